# mimus_embed(TARGET OUTPUT name.c HEADER name.h TYPE type TABLE array FILES files...)
#
# Compiles the files into the target as bytes.
function(mimus_embed target)
  cmake_parse_arguments(EMBED "" "OUTPUT;HEADER;TYPE;TABLE" "FILES" ${ARGN})
  set(embedded ${PROJECT_BINARY_DIR}/${EMBED_OUTPUT})
  add_custom_command(
    OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${EMBED_FILES}" -DOUTPUT=${embedded} -DHEADER=${EMBED_HEADER}
            -DTYPE=${EMBED_TYPE} -DTABLE=${EMBED_TABLE} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${EMBED_FILES} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding ${EMBED_OUTPUT}" VERBATIM)
  target_sources(${target} PRIVATE ${embedded})
endfunction()
