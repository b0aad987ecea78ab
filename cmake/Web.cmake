# mimus_web(TARGET FOLDER dir)
#
# Embeds what pages are made of into the target: the .css and .js of the folder, and Chart.js, which draws. It comes with the
# distribution (Debian: libjs-chart.js) and is not kept here; tested are 3.7 and 3.9.
find_file(MIMUS_CHART_JS NAMES chart.min.js Chart.min.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist /usr/local/share/javascript/chart.js
  DOC "Chart.js, minified")
if(NOT MIMUS_CHART_JS)
  message(FATAL_ERROR "Chart.js not found: install libjs-chart.js (ci/deps.sh lists all that is needed), or name the file by "
    "-DMIMUS_CHART_JS=/path/to/chart.min.js")
endif()
file(STRINGS ${MIMUS_CHART_JS} chart_version REGEX "Chart\\.js v[0-9]+" LIMIT_COUNT 1)
if(NOT chart_version MATCHES "Chart\\.js v3\\.")
  message(FATAL_ERROR "${MIMUS_CHART_JS}: expected Chart.js 3, found \"${chart_version}\"")
endif()

function(mimus_web target)
  cmake_parse_arguments(WEB "" "FOLDER" "" ${ARGN})
  set(library ${PROJECT_BINARY_DIR}/chart.js)
  configure_file(${MIMUS_CHART_JS} ${library} COPYONLY)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${WEB_FOLDER}/*.css ${PROJECT_SOURCE_DIR}/${WEB_FOLDER}/*.js)
  mimus_embed(${target} OUTPUT assets.c HEADER assets.h TYPE mimus__asset TABLE mimus__assets FILES ${files} ${library})
endfunction()
