# Writes OUTPUT: FILE as a NUL-ended text, const char mimus__text_of_IDENTIFIER[].
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT}
  "/* Made by cmake/embed_text.cmake. */\nextern const char mimus__text_of_${IDENTIFIER}[];\n"
  "const char mimus__text_of_${IDENTIFIER}[] = {${bytes}0};\n")
