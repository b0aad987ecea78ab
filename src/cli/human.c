#include "human.h"

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

human human_real(double value) {
    human out = nothing;
    if (isfinite(value))
        snprintf(out.text, sizeof out.text,
                 fabs(value) < 1e-3 || fabs(value) >= 1e6 ? "%.4g" : "%.4f", value);
    return out;
}

/* ------------------------------------------------------------------- cli_texts */

/* The next character of `*text`, its bytes in `*bytes`, and its cells; what is no character, or
 * none to print, is one cell and shown as '?'. */
static size_t next_cells(const char *text, size_t *bytes, int *printable) {
    wchar_t character;
    mbstate_t state;
    memset(&state, 0, sizeof state);
    size_t length = mbrtowc(&character, text, strlen(text), &state);
    if (length == 0 || length > strlen(text)) {
        *bytes = 1;
        *printable = 0;
        return 1;
    }
    int cells = wcwidth(character);
    *bytes = length;
    *printable = cells >= 0;
    return cells >= 0 ? (size_t)cells : 1;
}

size_t human_width(const char *text) {
    size_t width = 0, bytes;
    int printable;
    for (; *text != '\0'; text += bytes)
        width += next_cells(text, &bytes, &printable);
    return width;
}

void human_fit(char *out, size_t bytes, const char *text, size_t cells) {
    const char *cut = human_utf8() ? "\u2026" : "~";
    size_t width = human_width(text), used = 0, length, at = 0;
    size_t room = width > cells && cells > 0 ? cells - 1 : cells;
    int printable;
    for (; *text != '\0'; text += length) {
        size_t taken = next_cells(text, &length, &printable);
        if (used + taken > room || at + length + strlen(cut) >= bytes)
            break;
        used += taken;
        if (printable)
            memcpy(out + at, text, length);
        else
            out[at] = '?';
        at += printable ? length : 1;
    }
    snprintf(out + at, bytes - at, "%s", *text != '\0' && cells > 0 ? cut : "");
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
