package httpapi_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// requests is how many requests TestNoRequestFailsTheServer sends each operation of each store; more are for long runs.
var requests = flag.Int("requests", 25, "how many requests each operation of the API gets from the generator")

// TestNoRequestFailsTheServer sends each operation of openapi.json to each store, with values that match its schema and
// with broken ones. No answer is a failure of the server, each body is JSON, and no goroutine goes on after the end.
func TestNoRequestFailsTheServer(t *testing.T) {
	t.Parallel()
	leavesNothing(t, "httpapi-requests", func(t *testing.T) {
		eachStore(t, (*served).answersAll)
	})
}

// answersAll sends each operation the requests of a generator.
func (s *served) answersAll() {
	s.Helper()
	s.enqueue("mail", "acme")
	var described struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal([]byte(s.ask("GET", "/openapi.json", "").text), &described); err != nil {
		s.Fatal(err)
	}
	if len(described.Paths) < 20 {
		s.Fatalf("%d paths", len(described.Paths))
	}
	g := &generator{schemas: described.Components.Schemas, id: s.enqueue("mail", "acme").String()}
	for path, methods := range described.Paths {
		for method, op := range methods {
			for g.n = range *requests {
				target, body := g.request(strings.TrimPrefix(path, httpapi.Root), op)
				s.survives(strings.ToUpper(method), target, body, g.n%9 == 8)
			}
		}
	}
	if strings.Contains(s.log.String(), "request failed") {
		s.Errorf("the log is\n%s", s.log)
	}
}

// survives sends a request, which must not fail the server.
func (s *served) survives(method, target, body string, lines bool) {
	s.Helper()
	kind := "application/json"
	if lines {
		kind = "application/x-ndjson"
	}
	r := s.ask(method, target, body, "Content-Type", kind)
	if r.status >= 500 || r.status < 200 {
		s.Errorf("%s %s %.300s fails the server: %d %s", method, target, body, r.status, r.text)
	}
	if !validAnswer(r.text) {
		s.Errorf("%s %s: no JSON: %.200s", method, target, r.text)
	}
}

// validAnswer reports whether a text is JSON, or lines of JSON.
func validAnswer(text string) bool {
	if json.Valid([]byte(text)) {
		return true
	}
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			return false
		}
	}
	return true
}

// operation and schema are the parts of openapi.json from which the test makes requests.
type operation struct {
	Parameters []struct {
		Name, In string
		Schema   schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Format     string
	Enum       []any
	OneOf      []schema
	Items      *schema
	Properties map[string]schema
	Required   []string
}

// generator makes values by schemas. Its number n decides which values are right, and how the others are broken.
type generator struct {
	schemas map[string]schema
	id      string
	n, turn int
}

// strange are values that few schemas accept.
var strange = []any{nil, "", -1, 1e300, true, []any{}, []any{nil, 1}, map[string]any{"a": 1}, "\x00", "\xff", "💥", strings.Repeat("x", 9000), "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "-5m", "106752d"}

func (g *generator) request(path string, op operation) (target, body string) {
	query := ""
	for _, p := range op.Parameters {
		text := fmt.Sprint(g.value(p.Schema, 0))
		text = text[:min(len(text), 3000)]
		if p.In == "path" {
			if p.Schema.Format == "uuid" && g.n%2 == 0 {
				text = g.id
			}
			path = strings.Replace(path, "{"+p.Name+"}", cmp.Or(url.PathEscape(text), "x"), 1)
		} else if p.Name != "wait" && p.Name != "topics" && (g.n+len(p.Name))%3 > 0 {
			query += "&" + p.Name + "=" + url.QueryEscape(text)
		}
	}
	content, has := op.RequestBody.Content["application/json"]
	if has {
		text, err := json.Marshal(g.value(content.Schema, 0))
		if err != nil {
			panic(err)
		}
		if body = string(text); g.n%25 == 24 {
			body = body[:len(body)/2]
		}
	}
	return path + "?" + strings.TrimPrefix(query, "&"), body
}

func (g *generator) value(s schema, depth int) any {
	g.turn++
	if g.n > 3 && g.turn%7 == g.n%7 {
		return strange[(g.turn*31+g.n)%len(strange)]
	}
	if s.Ref != "" {
		s = g.schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	if len(s.OneOf) > 0 {
		return g.value(s.OneOf[g.n%len(s.OneOf)], depth)
	}
	if len(s.Enum) > 0 {
		return s.Enum[g.turn%len(s.Enum)]
	}
	kind := fmt.Sprint(s.Type)
	switch {
	case depth > 5:
		return nil
	case strings.Contains(kind, "object"):
		out := make(map[string]any)
		for name, property := range s.Properties {
			if (g.n+len(name))%3 > 0 || g.n%4 == 0 {
				out[name] = g.value(property, depth+1)
			}
		}
		return out
	case strings.Contains(kind, "array"):
		if s.Items == nil {
			return []any{}
		}
		return []any{g.value(*s.Items, depth+1)}
	case strings.Contains(kind, "integer"), strings.Contains(kind, "number"):
		return g.n % 12
	case strings.Contains(kind, "boolean"):
		return g.n%2 == 0
	case s.Format == "date-time":
		return time.Unix(int64(g.n)*1e8, 0).UTC().Format(time.RFC3339)
	}
	return []string{g.id, "mail", "queue:mail", "10m", "100/s", "acme"}[(g.turn+g.n)%6]
}
