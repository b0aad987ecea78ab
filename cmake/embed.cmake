# Writes OUTPUT: every one of FILES as a NUL-ended byte array, and TABLE, the array of TYPE with their names; HEADER
# declares both.
list(SORT FILES)
set(arrays "")
set(table "")
set(index 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file${index}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", file${index}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT}
  "/* Made by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\n${arrays}\n"
  "const ${TYPE} ${TABLE}[] = {\n${table}    {NULL, NULL},\n};\n")
