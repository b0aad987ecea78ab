#include "human.h"

#include "cli.h"

#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

int human_utf8(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* ----------------------------------------------------------------- numbers */

static const human nothing = {"-"};

human human_count(double value) {
    human out;
    char digits[32];
    if (!isfinite(value) || fabs(value) >= 1e18)
        return nothing;
    int length = snprintf(digits, sizeof digits, "%.0f", value);
    char *to = out.text;
    for (int i = 0; i < length; i++) {
        *to++ = digits[i];
        if (i < length - 1 && (length - 1 - i) % 3 == 0 && digits[i] != '-')
            *to++ = ',';
    }
    *to = '\0';
    return out;
}

human human_things(double value, const char *noun) {
    human out, count = human_count(value);
    snprintf(out.text, sizeof out.text, "%.14s %.14s%s", count.text, noun, value == 1 ? "" : "s");
    return out;
}

/* Three digits of `value`, divided by `step` until they are in sight. */
static human scaled(double value, double step, const char *const *units) {
    human out;
    if (!isfinite(value))
        return nothing;
    while (fabs(value) >= step * 0.9995 && units[1] != NULL) {
        value /= step;
        units++;
    }
    int decimals = fabs(value) >= 99.95 ? 0 : fabs(value) >= 9.995 ? 1 : 2;
    if (decimals > 0 && value == floor(value) && fabs(value) < 100)
        decimals = 0;
    snprintf(out.text, sizeof out.text, "%.*f%s", decimals, value, *units);
    return out;
}

human human_short(double value) {
    static const char *const units[] = {"", "k", "M", "G", "T", NULL};
    return scaled(value, 1000, units);
}

human human_bytes(double value) {
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", NULL};
    return scaled(value, 1024, units);
}

human human_share(double value) {
    human out = nothing;
    if (isfinite(value))
        snprintf(out.text, sizeof out.text, "%.1f%%", 100 * value);
    return out;
}

human human_seconds(double value) {
    human out = nothing;
    if (!isfinite(value) || value < 0 || value > 1e12)
        return out;
    if (value < 59.95) {
        snprintf(out.text, sizeof out.text, "%.*f s", value < 9.995 ? 2 : 1, value);
        return out;
    }
    long long seconds = (long long)(value + 0.5);
    if (seconds < 3600)
        snprintf(out.text, sizeof out.text, "%lld:%02lld", seconds / 60, seconds % 60);
    else
        snprintf(out.text, sizeof out.text, "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
    return out;
}

human human_figure(double value) {
    human out = nothing;
    if (isfinite(value))
        snprintf(out.text, sizeof out.text, "%.4g", value);
    return out;
}

human human_real(double value) {
    human out = nothing;
    if (isfinite(value))
        snprintf(out.text, sizeof out.text,
                 fabs(value) < 1e-3 || fabs(value) >= 1e6 ? "%.4g" : "%.4f", value);
    return out;
}

/* ------------------------------------------------------------------- texts */

/* How one character is shown. */
typedef struct glyph {
    char shown[8];
    size_t bytes; /* it takes in the text */
    size_t cells; /* it is shown in */
} glyph;

/* Control characters are escaped; what the locale has no character for, or none to print, is '?'.
 */
static glyph next_glyph(const char *text) {
    static const char named[] = "\n\t\r", letters[] = "ntr";
    const unsigned char byte = (unsigned char)*text;
    const char *name = strchr(named, byte);
    glyph next = {.shown = "?", .bytes = 1, .cells = 1};
    wchar_t character;
    mbstate_t state;
    if (name != NULL) {
        snprintf(next.shown, sizeof next.shown, "\\%c", letters[name - named]);
        next.cells = 2;
        return next;
    }
    if (byte < 0x20 || byte == 0x7F) {
        snprintf(next.shown, sizeof next.shown, "\\x%02x", byte);
        next.cells = 4;
        return next;
    }
    memset(&state, 0, sizeof state);
    size_t bytes = mbrtowc(&character, text, strlen(text), &state);
    if (bytes == 0 || bytes > strlen(text))
        return next;
    next.bytes = bytes;
    int cells = wcwidth(character);
    if (cells < 0 || bytes >= sizeof next.shown)
        return next;
    memcpy(next.shown, text, bytes);
    next.shown[bytes] = '\0';
    next.cells = (size_t)cells;
    return next;
}

size_t human_width(const char *text) {
    size_t width = 0;
    while (*text != '\0') {
        glyph next = next_glyph(text);
        width += next.cells;
        text += next.bytes;
    }
    return width;
}

void human_fit(char *out, size_t bytes, const char *text, size_t cells) {
    const char *cut = human_utf8() ? "\u2026" : "~";
    size_t used = 0, at = 0;
    size_t room = human_width(text) > cells && cells > 0 ? cells - 1 : cells;
    while (*text != '\0') {
        glyph next = next_glyph(text);
        size_t length = strlen(next.shown);
        if (used + next.cells > room || at + length + strlen(cut) >= bytes)
            break;
        memcpy(out + at, next.shown, length);
        at += length;
        used += next.cells;
        text += next.bytes;
    }
    snprintf(out + at, bytes - at, "%s", *text != '\0' && cells > 0 ? cut : "");
}

char *human_text(const char *text, size_t cells) {
    size_t bytes = 4 * strlen(text) + 8; /* an escape is four for one */
    char *out = cli_allocate(bytes, 1);
    human_fit(out, bytes, text, cells);
    return out;
}

void human_bar(char *out, size_t bytes, double share, size_t cells) {
    static const char *const eighth[] = {"",       "\u258f", "\u258e", "\u258d", "\u258c",
                                         "\u258b", "\u258a", "\u2589", "\u2588"};
    int fine = human_utf8();
    double filled = (share > 0 ? share < 1 ? share : 1 : 0) * (double)cells;
    size_t units = (size_t)(fine ? filled * 8 + 0.5 : filled + 0.5), at = 0;
    out[0] = '\0';
    if (units == 0 && share > 0)
        units = 1; /* little is not nothing */
    for (size_t step = fine ? 8 : 1; units > 0; units -= units < step ? units : step) {
        const char *part = fine ? eighth[units < 8 ? units : 8] : "#";
        if (at + strlen(part) + 1 > bytes)
            break;
        at += (size_t)snprintf(out + at, bytes - at, "%s", part);
    }
}
