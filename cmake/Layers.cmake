# mimus_layer(NAME FOLDER dirs... [ON layers...] [LINK libraries...])
#
# One object library of all .c files in the folders. It publishes its folders as include paths and inherits
# those of the layers it stands ON.
function(mimus_layer name)
  cmake_parse_arguments(LAYER "" "" "FOLDER;ON;LINK" ${ARGN})
  set(sources)
  set(folders)
  foreach(folder ${LAYER_FOLDER})
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    list(APPEND sources ${found})
    list(APPEND folders ${PROJECT_SOURCE_DIR}/${folder})
  endforeach()
  add_library(mimus_${name} OBJECT ${sources})
  set_target_properties(mimus_${name} PROPERTIES MIMUS_FOLDERS "${folders}") # for the tests of the layers
  target_include_directories(mimus_${name} PUBLIC ${folders} ${PROJECT_SOURCE_DIR}/include)
  foreach(below ${LAYER_ON})
    target_link_libraries(mimus_${name} PUBLIC mimus_${below})
  endforeach()
  target_link_libraries(mimus_${name} PUBLIC ${LAYER_LINK})
  target_compile_definitions(mimus_${name} PRIVATE _XOPEN_SOURCE=700 _DEFAULT_SOURCE)
  target_compile_options(mimus_${name} PRIVATE -ffunction-sections -fdata-sections)
  mimus_warnings(mimus_${name})
  set(MIMUS_LAYERS ${MIMUS_LAYERS} ${name} PARENT_SCOPE)
endfunction()

# mimus_objects(OUT layers...): the object files of the layers, as sources of another target.
function(mimus_objects out)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:mimus_\\1>")
  set(${out} ${ARGN} PARENT_SCOPE)
endfunction()

# mimus_library(NAME LAYERS layers... LINK libraries...)
#
# A library that is installed, made of whole layers. What its public functions never reach is left out, and so
# the libraries that only such functions would need: a game does not link libzip for the sake of the importers.
function(mimus_library name)
  cmake_parse_arguments(LIBRARY "" "" "LAYERS;LINK" ${ARGN})
  mimus_objects(objects ${LIBRARY_LAYERS})
  add_library(${name} ${objects})
  set_target_properties(${name} PROPERTIES
    LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PRIVATE ${LIBRARY_LINK})
  target_link_options(${name} PRIVATE -Wl,--gc-sections)
  if(MIMUS_SANITIZE) # holds on to everything, and its run time comes with the program
    target_link_libraries(${name} PRIVATE
      PkgConfig::LIBZIP PkgConfig::HDF5 PkgConfig::PROTOBUF_C PkgConfig::ZLIB csv)
  else()
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

function(mimus_warnings target)
  # Sizes are enum constants here, and some take part in floating-point arithmetic.
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-enum-float-conversion)
  if(MIMUS_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Everything is instrumented, so that the fuzzer sees where its input leads; tests/fuzz links the targets.
if(MIMUS_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "MIMUS_FUZZ needs clang: libFuzzer comes with it")
  endif()
  set(MIMUS_SANITIZE ON)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(MIMUS_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
