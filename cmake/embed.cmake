# Writes OUTPUT: every .cl, .clh and .inc of FOLDER as a NUL-ended byte array, and the table of them.
file(GLOB files ${FOLDER}/*.cl ${FOLDER}/*.clh ${FOLDER}/*.inc)
list(SORT files)
set(arrays "")
set(table "")
set(index 0)
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file${index}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", file${index}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT}
  "/* Made from cl/ by cmake/embed.cmake. */\n#include \"kernels.h\"\n\n${arrays}\n"
  "const mimus__embedded_file mimus__embedded_files[] = {\n${table}    {NULL, NULL},\n};\n")
