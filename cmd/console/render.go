package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// parse reads the template of a page, with the parts that all pages share.
func (c *Console) parse(name string) (*template.Template, error) {
	return template.New(name).Funcs(c.funcs()).ParseFS(files, "templates/layout.html", "templates/parts.html", "templates/"+name+".html")
}

// render writes a part of a page: page, live, or one of its own.
func (c *Console) render(w io.Writer, s *screen, part string) error {
	t := c.templates[s.visit.page.name]
	if t == nil {
		t = c.templates["overview"]
	}
	return t.ExecuteTemplate(w, part, s)
}

// funcs are the functions of templates.
func (c *Console) funcs() template.FuncMap {
	return template.FuncMap{
		"url": c.url, "static": c.static, "time": timeOf, "count": draw.Count, "short": draw.ShortCount, "seconds": seconds, "quoted": quoted,
		"percent": percent, "json": asJSON, "lines": strings.Split, "shortID": shortID, "plural": draw.Plural, "rate": rate, "inc": func(n int) int { return n + 1 }, "figure": figure, "list": func(all ...any) []any { return all },
	}
}

// url is the address of a page: a path below the base, and pairs of names and values. Values of "" are left out.
func (c *Console) url(path string, pairs ...any) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if text := fmt.Sprint(pairs[i+1]); text != "" {
			query.Add(fmt.Sprint(pairs[i]), text)
		}
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	at := c.options.Base + strings.Join(parts, "/")
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	return at
}

// static is the address of a file.
func (c *Console) static(name string) string {
	_, sum := assets()
	return c.options.Base + "/static/" + sum + "/" + name
}

// timeOf shows an instant. The browser shows how long ago it is, or its time in the zone that the viewer chose.
func timeOf(at time.Time) template.HTML {
	if at.IsZero() {
		return `<span class="none">—</span>`
	}
	iso := at.UTC().Format("2006-01-02T15:04:05.000Z")
	return template.HTML(`<time datetime="` + iso + `">` + at.UTC().Format("2006-01-02 15:04:05") + ` UTC</time>`) //nolint:gosec // digits alone
}

// seconds shows a number of seconds, or a duration.
func seconds(value any) string {
	switch d := value.(type) {
	case float64:
		return draw.Duration(time.Duration(d * float64(time.Second)))
	case *float64:
		return seconds(*d)
	case time.Duration:
		return draw.Duration(d)
	case *time.Duration:
		return draw.Duration(*d)
	}
	return fmt.Sprint(value)
}

// percent shows a share of 0 to 1.
func percent(share float64) string { return draw.Percent(1, share) + " %" }

// asJSON writes data for scripts, in an attribute.
func asJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// shortID is the end of an ID, by which people tell jobs apart: the beginning is its time.
func shortID(id any) string {
	text := fmt.Sprint(id)
	return text[max(0, len(text)-8):]
}

// rate writes a number per second.
func rate(perSecond float64) string { return figure(math.Round(100*perSecond) / 100) }

// figure writes a number with what it needs of digits.
func figure(value float64) string {
	if value == float64(int(value)) {
		return draw.Count(int(value))
	}
	return strconv.FormatFloat(value, 'g', 4, 64)
}
