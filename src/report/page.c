#include "page.h"

#include "assets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *asset(const char *name) {
    const mimus__asset *found = mimus__assets;
    while (found->name != NULL && strcmp(found->name, name) != 0)
        found++;
    assert(found->name != NULL);
    return (const char *)found->bytes;
}

void mimus__page_text(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' || *text == 0x7F ? ' ' : *text, out);
        }
    }
}

void mimus__page_begin(FILE *out, const char *title) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          out);
    mimus__page_text(out, title);
    fprintf(out, "</title>\n<style>\n%s</style></head>\n<body><main>\n", asset("page.css"));
}

void mimus__page_end(FILE *out) {
    fputs("</main></body></html>\n", out);
}

/* JSON inside of a <script>: no "<" may end it. */
static void put_json(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '<')
            fputs("\\u003c", out);
        else
            fputc(*text, out);
    }
}

mimus_status mimus__page_write(FILE *out, const char *title, const char *script,
                               const json_t *document) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    MIMUS_TRY(mimus__json_text(&text, document, JSON_COMPACT));
    mimus__page_begin(out, title);
    fputs("<noscript>This page is drawn by its script, which the browser does not run."
          "</noscript>\n<script type=\"application/json\" id=\"document\">",
          out);
    put_json(out, text);
    fprintf(out, "</script>\n<script>\n%s\n</script>\n<script>\n%s</script>\n", asset("chart.js"),
            asset(script));
    mimus__page_end(out);
out:
    free(text);
    return status;
}
