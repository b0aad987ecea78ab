# mimus_kernels(TARGET FOLDER dir)
#
# Embeds every .cl, .clh and .inc of the folder into the target as bytes, and has clang compile every .cl with
# its default settings, so that a broken kernel breaks the build and not a user's evening.
function(mimus_kernels target)
  cmake_parse_arguments(KERNELS "" "FOLDER" "" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/${KERNELS_FOLDER})
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.cl ${folder}/*.clh ${folder}/*.inc)
  mimus_embed(${target} OUTPUT kernels.c HEADER kernels.h TYPE mimus__embedded_file TABLE mimus__embedded_files
    FILES ${files})

  find_program(MIMUS_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
  if(NOT MIMUS_CLANG)
    message(WARNING "clang not found: kernels are not test-compiled")
    return()
  endif()
  set(stamps)
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cl)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.clh ${folder}/*.inc)
  foreach(kernel ${kernels})
    get_filename_component(name ${kernel} NAME)
    set(stamp ${PROJECT_BINARY_DIR}/kernel-check/${name}.stamp)
    add_custom_command(
      OUTPUT ${stamp}
      COMMAND ${MIMUS_CLANG} -x cl -cl-std=CL1.2 -Xclang -finclude-default-header
              -target spir64-unknown-unknown -fsyntax-only -Wall -Wextra -Werror -I${folder} ${kernel}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/kernel-check
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
      DEPENDS ${kernel} ${headers}
      COMMENT "Checking ${name}" VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(kernel-check ALL DEPENDS ${stamps})
endfunction()
