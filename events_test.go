package sluice_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/event"
)

// eventsTable shows the events as docs/events.md does.
func eventsTable() string {
	var text strings.Builder
	text.WriteString("| event | level | by | when | fields |\n| --- | --- | --- | --- | --- |\n")
	for _, e := range event.All() {
		fields := "–"
		if e.Fields != "" {
			fields = regexp.MustCompile(`[a-z_]+`).ReplaceAllString(e.Fields, "`$0`")
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", e.Name, e.Level, e.By, e.When, fields)
	}
	return text.String()
}

func fieldsTable() string {
	var text strings.Builder
	text.WriteString("| field | meaning |\n| --- | --- |\n")
	for _, f := range event.Fields() {
		fmt.Fprintf(&text, "| `%s` | %s |\n", f.Name, f.Meaning)
	}
	return text.String()
}

// TestEventsAreWellMade checks the table of events. Each name must occur once, each field must have a meaning, and the
// code must log each event.
func TestEventsAreWellMade(t *testing.T) {
	t.Parallel()
	var names, known []string
	for _, f := range event.Fields() {
		known = append(known, f.Name)
	}
	used := []string{"holder"}
	for _, e := range event.All() {
		if slices.Contains(names, e.Name) {
			t.Errorf("%s is there twice", e.Name)
		}
		names = append(names, e.Name)
		for _, field := range e.May() {
			used = append(used, field)
			if !slices.Contains(known, field) {
				t.Errorf("%s has a field %s without a meaning", e.Name, field)
			}
		}
	}
	for _, field := range known {
		if !slices.Contains(used, field) {
			t.Errorf("no event has the field %s", field)
		}
	}
}

// TestNothingElseIsLogged finds log calls that bypass the table, and events that no code logs.
func TestNothingElseIsLogged(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`(?i)\b(log|logger|slog)\.(Debug|Info|Warn|Error|Log|LogAttrs|Print|Printf|Println)(Context)?\(`)
	recorded := make(map[string]bool)
	for _, path := range sourceFiles(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := line.Find(text); found != nil && path != "live.go" && path != "duplicate.go" {
			t.Errorf("%s logs by %s…; make it an event of internal/event", path, found)
		}
		for _, found := range regexp.MustCompile(`\bevent\.([A-Z]\w+)`).FindAllSubmatch(text, -1) {
			recorded[string(found[1])] = true
		}
	}
	for _, at := range []string{"job.go", "log.go", "tenants.go"} {
		text, err := os.ReadFile(filepath.Join("internal", "event", at))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`\b[A-Z]\w+\b`).FindAll(text, -1) {
			recorded[string(found)] = true
		}
	}
	live, err := os.ReadFile("live.go")
	if err != nil || !strings.Contains(string(live), `Logger.Warn("`+event.SettingsRefused.Name+`", "queue"`) {
		t.Errorf("live.go does not log `%s`, %v", event.SettingsRefused.Name, err)
	}
	duplicate, err := os.ReadFile("duplicate.go")
	for _, e := range []*event.Event{event.JobDuplicate, event.LinesLeftOut} {
		if err != nil || !strings.Contains(string(duplicate), `logger.Info("`+e.Name+`", `) {
			t.Errorf("duplicate.go does not log `%s`, %v", e.Name, err)
		}
	}
	recorded["SettingsRefused"], recorded["JobDuplicate"] = true, true
	for _, name := range eventVariables(t) {
		if !recorded[name] {
			t.Errorf("nobody logs %s", name)
		}
	}
}

// eventVariables returns the Go names of the events in the table.
func eventVariables(t *testing.T) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("internal", "event", "table.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		for _, spec := range decl.(*ast.GenDecl).Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
