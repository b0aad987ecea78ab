# mimus_texts(TARGET files...)
#
# Embeds each file into the target as a NUL-ended text: "a/policy.c.in" is `const char mimus__text_of_policy_c_in[]`.
function(mimus_texts target)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} identifier)
    set(embedded ${PROJECT_BINARY_DIR}/texts/${target}/${name}.c)
    add_custom_command(
      OUTPUT ${embedded}
      COMMAND ${CMAKE_COMMAND} -DFILE=${PROJECT_SOURCE_DIR}/${file} -DOUTPUT=${embedded} -DIDENTIFIER=${identifier}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
      DEPENDS ${PROJECT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
      COMMENT "Embedding ${name}" VERBATIM)
    target_sources(${target} PRIVATE ${embedded})
  endforeach()
endfunction()
