# mimus_protobuf(TARGET files.proto...)
#
# Has protoc-c turn each .proto into NAME.pb-c.c and .h at build, compiled into the target. Whoever may see the target's
# headers may include NAME.pb-c.h.
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(MIMUS_PROTOC_C protoc-c REQUIRED) # Debian: protobuf-c-compiler

function(mimus_protobuf target)
  foreach(file ${ARGN})
    get_filename_component(folder ${PROJECT_SOURCE_DIR}/${file} DIRECTORY)
    get_filename_component(name ${file} NAME_WE)
    set(out ${PROJECT_BINARY_DIR}/protobuf/${target})
    file(MAKE_DIRECTORY ${out})
    add_custom_command(
      OUTPUT ${out}/${name}.pb-c.c ${out}/${name}.pb-c.h
      COMMAND ${MIMUS_PROTOC_C} --proto_path=${folder} --c_out=${out} ${name}.proto
      DEPENDS ${PROJECT_SOURCE_DIR}/${file}
      COMMENT "Generating ${name}.pb-c.c" VERBATIM)
    add_custom_target(${target}-${name}-protobuf DEPENDS ${out}/${name}.pb-c.c ${out}/${name}.pb-c.h)
    add_dependencies(${target} ${target}-${name}-protobuf)
    target_sources(${target} PRIVATE ${out}/${name}.pb-c.c)
    set_source_files_properties(${out}/${name}.pb-c.c PROPERTIES COMPILE_OPTIONS -w) # not ours to mend
    target_include_directories(${target} SYSTEM PUBLIC ${out})
  endforeach()
  target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUF_C)
endfunction()
