package sluice_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine/enginetest"
	"github.com/sluice-queue/sluice/internal/docpart"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/storetest"
)

// update writes the parts of the docs that are made from code: go test -run TestDocs -update.
var update = flag.Bool("update", false, "write the generated parts of the docs")

// doors says which of our packages each package may import. Another arrow is a mistake, or a decision to be made.
var doors = map[string][]string{
	"":                     {"internal/graph"},
	"internal/graph":       {},
	"schema":               {},
	"scrub":                {},
	"worker":               {"", "limit", "step", "tenancy", "internal/began", "internal/event", "internal/obey", "internal/pause", "internal/safe", "internal/scrubbed", "presence", "progress"},
	"dispatcher":           {"", "stat", "step", "internal/began", "internal/event", "internal/obey", "internal/pause", "internal/safe", "internal/scrubbed", "audit", "engine", "presence"},
	"upkeep":               {"", "batch", "changes", "flow", "operation", "schedule", "stat", "step", "health", "alert", "audit", "forecast", "internal/event", "internal/obey", "internal/safe", "internal/scrubbed", "engine", "presence", "internal/storing"},
	"alert":                {"", "changes", "stat", "health", "forecast", "internal/event", "internal/feature", "internal/notify", "audit", "presence", "admission", "pressure"},
	"audit":                {"", "internal/feature"},
	"forecast":             {"", "internal/feature", "limit", "tenancy", "presence"},
	"health":               {""},
	"stat":                 {"", "internal/feature", "presence"},
	"explain":              {"", "deadletter", "hold", "internal/feature", "audit", "engine", "presence", "limit"},
	"deadletter":           {"", "engine", "internal/feature"},
	"step":                 {""},
	"engine":               {"", "internal/feature"},
	"admission":            {"", "internal/feature"},
	"pressure":             {"", "internal/feature"},
	"internal/room":        {"", "pressure"},
	"presence":             {"", "engine", "internal/feature"},
	"internal/storing":     {""},
	"internal/saving":      {"", "admission", "alert", "audit", "internal/storing", "operation", "presence", "schedule", "tenancy", "limit", "deadletter", "access"},
	"await":                {"", "internal/feature", "progress"},
	"progress":             {"", "internal/feature"},
	"batch":                {"", "internal/feature", "operation", "search"},
	"internal/awaiting":    {""},
	"internal/columns":     {},
	"internal/group":       {"", "internal/notify"},
	"internal/notify":      {""},
	"cmd/internal/draw":    {},
	"tenancy":              {"", "internal/feature", "audit"},
	"edit":                 {"", "internal/feature"},
	"hold":                 {"", "internal/feature"},
	"search":               {"", "deadletter", "hold", "internal/feature"},
	"operation":            {"", "hold", "schedule", "search", "internal/feature", "audit"},
	"flow":                 {"", "await", "internal/feature", "internal/graph"},
	"limit":                {"", "internal/feature", "audit"},
	"schedule":             {"", "pressure", "schedule/cron", "internal/feature", "audit"},
	"schedule/cron":        {},
	"changes":              {"", "internal/feature", "audit"},
	"alert/webhook":        {"", "alert"},
	"cmd/internal/export":  {"", "health", "alert"},
	"forward":              {"", "admission", "step", "internal/event", "internal/obey", "internal/safe", "internal/scrubbed", "engine", "presence", "pressure"},
	"observe":              {"", "edit", "hold", "explain", "operation", "stat", "step", "tenancy", "alert", "forecast", "internal/counter", "engine", "presence", "admission", "schedule", "pressure", "await", "limit", "progress", "batch", "access", "deadletter"},
	"cmd/trace":            {"", "internal/scrubbed", "observe", "step", "engine"},
	"cmd/metric":           {"", "limit", "stat", "step", "health", "alert", "forecast", "observe", "engine", "presence", "admission", "pressure"},
	"api":                  {"", "internal/event", "engine", "presence"},
	"move":                 {"", "audit", "internal/migration", "store/sqlite", "store/postgres"},
	"internal/broadcast":   {""},
	"internal/pause":       {"", "limit", "tenancy"},
	"internal/began":       {""},
	"internal/obey":        {"", "internal/event", "presence"},
	"internal/event":       {"", "explain", "tenancy", "audit", "presence"},
	"internal/checkup":     {"", "health"},
	"internal/near":        {""},
	"internal/safe":        {"", "edit", "hold", "explain", "operation", "schedule", "stat", "tenancy", "alert", "forecast", "engine", "presence", "admission", "pressure", "await", "limit", "progress", "batch", "access", "deadletter"},
	"internal/scrubbed":    {"", "operation", "alert", "internal/safe", "scrub", "engine", "presence"},
	"internal/migration":   {""},
	"internal/sqltx":       {},
	"internal/verbtest":    {"", "operation", "audit"},
	"internal/flow":        {"", "tenancy", "limit"},
	"internal/feature":     {""},
	"internal/follow":      {""},
	"internal/wave":        {"", "forecast"},
	"internal/lead":        {"", "presence"},
	"internal/rollup":      {"", "stat"},
	"internal/history":     {"", "stat"},
	"internal/counter":     {"", "stat", "internal/event", "presence"},
	"internal/testcache":   {},
	"internal/docpart":     {},
	"internal/debian":      {"internal/testcache"},
	"cmd/internal/systemd": {},
	"internal/coverage":    {},
	"internal/pgtest":      {"internal/debian", "internal/freeport"},
	"internal/litetest":    {"store/sqlite"},
	"internal/testbed":     {"internal/debian", "internal/freeport", "internal/pgtest", "internal/temporaltest"},
	"store/memory":         {"", "edit", "hold", "stat", "explain", "operation", "tenancy", "health", "alert", "audit", "forecast", "internal/broadcast", "internal/lead", "internal/flow", "internal/wave", "internal/rollup", "internal/counter", "engine", "presence", "internal/notify", "internal/saving", "internal/storing", "admission", "internal/group", "schedule", "pressure", "internal/room", "await", "internal/awaiting", "limit", "progress", "batch", "access", "deadletter"},
	"store/sqlite":         {"", "edit", "hold", "stat", "explain", "operation", "tenancy", "health", "alert", "audit", "forecast", "internal/broadcast", "internal/lead", "internal/checkup", "internal/columns", "internal/flow", "internal/follow", "internal/history", "internal/wave", "internal/rollup", "internal/migration", "internal/sqltx", "internal/counter", "internal/scrubbed", "engine", "presence", "internal/notify", "internal/saving", "internal/storing", "admission", "internal/group", "schedule", "pressure", "internal/room", "await", "internal/awaiting", "limit", "progress", "batch", "access", "deadletter"},
	"internal/timetest":    {},
	"store/remote":         {"", "access", "admission", "alert", "audit", "await", "batch", "deadletter", "edit", "engine", "explain", "flow", "forecast", "hold", "internal/feature", "internal/wire", "limit", "operation", "presence", "pressure", "progress", "schedule", "stat", "tenancy"},
	"store/postgres":       {"", "edit", "hold", "stat", "explain", "operation", "tenancy", "health", "alert", "audit", "forecast", "internal/broadcast", "internal/checkup", "internal/columns", "internal/flow", "internal/follow", "internal/history", "internal/wave", "internal/rollup", "internal/migration", "internal/sqltx", "internal/event", "internal/scrubbed", "internal/counter", "engine", "presence", "internal/notify", "internal/saving", "internal/storing", "admission", "internal/group", "schedule", "pressure", "internal/room", "await", "internal/awaiting", "limit", "progress", "batch", "flow", "access", "deadletter"},
	"sluicetest":           {"", "dispatcher", "engine", "schedule", "store/memory", "upkeep", "worker"},
	"store/storetest":      {"", "schema", "edit", "hold", "changes", "search", "stat", "explain", "operation", "schedule", "tenancy", "alert", "audit", "forecast", "health", "internal/verbtest", "engine", "presence", "internal/notify", "internal/storing", "admission", "pressure", "await", "flow", "limit", "progress", "batch", "access", "deadletter"},
	"engine/enginetest":    {"", "engine"},
	"engine/local":         {"", "worker", "audit", "engine", "presence", "pressure"},
	"engine/temporal":      {"", "engine"},
	"internal/demo":        {"", "explain", "tenancy", "internal/flow", "worker", "store/sqlite", "store/postgres", "audit"},
	"cmd/internal/sim":     {"", "tenancy", "internal/flow", "internal/near", "store/memory"},
	"cmd/internal/top":     {"", "stat", "alert", "health", "presence", "cmd/internal/draw"},
	"access":               {"", "internal/feature"},
	"cmd/signin":           {"", "access", "internal/event"},
	"internal/oidctest":    {"internal/testcache"},
	"cmd/internal/jobline": {""},
	"cmd/internal/acting":  {"", "engine", "internal/group"},
	"cmd/internal/tenants": {"", "forecast", "tenancy", "cmd/internal/draw"},
	"cmd/console":          {"", "access", "health", "presence", "alert", "audit", "batch", "changes", "deadletter", "explain", "flow", "forecast", "hold", "operation", "progress", "schedule", "search", "stat", "tenancy", "cmd/httpapi", "cmd/internal/draw", "internal/wire"},
	"cmd/httpapi":          {"cmd/internal/sim", "", "internal/pause", "internal/wire", "access", "admission", "audit", "await", "changes", "deadletter", "forecast", "health", "operation", "presence", "stat", "cmd/internal/acting", "cmd/internal/jobline", "cmd/internal/tenants", "edit", "engine", "explain", "hold", "internal/event", "pressure", "schema", "search", "alert", "batch", "flow", "limit", "progress", "schedule", "tenancy", "upkeep"},
	"cmd/internal/sample":  {"", "alert", "batch", "changes", "deadletter", "engine/local", "flow", "hold", "limit", "operation", "schedule", "search", "tenancy", "worker"},
	"cmd/cli": {
		"cmd/console", "cmd/internal/sample", "engine/local", "", "internal/group", "admission", "alert", "alert/webhook", "audit", "api", "changes", "deadletter", "dispatcher", "engine", "engine/temporal", "explain", "forecast", "forward", "health", "edit", "hold", "limit", "cmd/metric", "move", "observe", "operation", "presence", "progress", "schema", "scrub", "search", "stat", "store/postgres", "store/remote", "schedule", "pressure", "await", "batch", "flow", "access", "cmd/httpapi", "cmd/signin", "cmd/internal/acting", "cmd/internal/jobline", "cmd/internal/tenants",
		"store/sqlite", "tenancy", "cmd/trace", "upkeep", "worker",
		"internal/demo", "internal/wire", "cmd/internal/draw", "internal/event", "cmd/internal/export", "internal/near", "internal/scrubbed", "cmd/internal/sim", "cmd/internal/systemd", "cmd/internal/top",
	},
	"cmd/sluice":            {"cmd/cli"},
	"internal/clienttest":   {"internal/debian", "internal/testcache"},
	"apps/apptest":          {"", "internal/freeport", "audit"},
	"cmd/monitor":           {"", "api", "cmd/metric", "observe", "engine"},
	"cmd/monitor/otlp":      {"cmd/trace"},
	"internal/freeport":     {},
	"internal/wire":         {"", "access", "admission", "alert", "audit", "batch", "deadletter", "forecast", "health", "limit", "operation", "presence", "schedule", "search", "stat", "tenancy"},
	"internal/smalldisk":    {},
	"internal/temporaltest": {"internal/freeport", "internal/testcache"},
	"internal/temporald":    {"internal/temporaltest"},
}

const (
	module = "github.com/sluice-queue/sluice"

	maxFileLines, maxFuncLines, maxFuncLinesP90 = 500, 70, 40
)

// modules are the folders of the released modules: the library, the program, and the engine of Temporal.
var modules = []string{".", "cmd", "engine/temporal"}

// sourceFiles lists the hand-written files of the released modules.
func sourceFiles(t *testing.T, suffix string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(modules, filepath.ToSlash(path)) {
				return nil
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, suffix) {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPackagesImportOnlyThroughTheirDoors(t *testing.T) {
	t.Parallel()
	for _, path := range sourceFiles(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), ".")
		allowed, planned := doors[folder]
		if !planned {
			t.Errorf("package %q is not in the plan of the house", folder)
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			inner, ours := strings.CutPrefix(imported, module)
			if ours && !slices.Contains(allowed, strings.TrimPrefix(inner, "/")) {
				t.Errorf("%s imports %s", path, imported)
			}
			if folder == "" && strings.Contains(imported, ".") && !ours {
				t.Errorf("%s imports %s; the root needs the standard library only", path, imported)
			}
		}
	}
}

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	var lengths []int
	for _, path := range sourceFiles(t, ".go") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(text, []byte("\n"))
		isTest := strings.HasSuffix(path, "_test.go") || strings.Contains(path, "storetest")
		if lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d", path, lines, maxFileLines)
		}
		if isTest {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				length := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
				lengths = append(lengths, length)
				if length > maxFuncLines {
					t.Errorf("%s: %s has %d lines, more than %d", path, f.Name.Name, length, maxFuncLines)
				}
			}
		}
	}
	slices.Sort(lengths)
	if p90 := lengths[len(lengths)*9/10]; p90 > maxFuncLinesP90 {
		t.Errorf("a tenth of the functions have more than %d lines, want at most %d", p90, maxFuncLinesP90)
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	t.Parallel()
	docs := map[string]bool{}
	for _, path := range sourceFiles(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Dir(path)
		docs[folder] = docs[folder] || parsed.Doc != nil
		for _, decl := range parsed.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s has no comment", path, name)
			}
			if f, is := decl.(*ast.FuncDecl); is && f.Doc != nil && f.Name.IsExported() && !strings.HasPrefix(f.Doc.Text(), f.Name.Name+" ") {
				t.Errorf("%s: the comment of %s begins with another name", path, f.Name.Name)
			}
		}
	}
	for folder, documented := range docs {
		if !documented {
			t.Errorf("package %s has no comment", folder)
		}
	}
}

// undocumented names what a declaration exports without a comment.
func undocumented(decl ast.Decl) []string {
	var names []string
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || receiverIsExported(d)) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && d.Doc == nil && s.Doc == nil {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func receiverIsExported(f *ast.FuncDecl) bool { return ast.IsExported(receiverName(f)) }

func TestNoJunkDrawersAndNothingLeftOpen(t *testing.T) {
	t.Parallel()
	drawer := regexp.MustCompile(`(^|/)(utils?|common|helpers?|misc|shared|base)(/|\.go$|_test\.go$)`)
	open := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	for _, suffix := range []string{".go", ".sql", ".md"} {
		for _, path := range sourceFiles(t, suffix) {
			if drawer.MatchString(filepath.ToSlash(path)) {
				t.Errorf("%s: name what it is for", path)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if path != "tidy_test.go" && open.Match(text) {
				t.Errorf("%s leaves something open: %s", path, open.Find(text))
			}
		}
	}
}

func TestStatementsSayWhatTheyAreForAndAreUsed(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, path := range sourceFiles(t, ".go") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	columns := settingColumns()
	for _, path := range sourceFiles(t, ".sql") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			t.Errorf("%s does not say what it is for", path)
		}
		folder := filepath.Base(filepath.Dir(path))
		if folder == "sql" && !strings.Contains(code.String(), "//go:embed sql/"+filepath.Base(path)+"\n") {
			t.Errorf("%s is not used", path)
		}
		if strings.HasPrefix(filepath.Base(path), "queue") && strings.Contains(string(text), "payload_limit") {
			flat := strings.Join(strings.Fields(string(text)), " ")
			if !strings.Contains(flat, strings.Join(columns, ", ")) && !strings.Contains(flat, assignments(columns)) {
				t.Errorf("%s does not name the settings in the order of StoredSettings", path)
			}
		}
	}
}

// settingColumns are the columns of the queue table that hold settings, in order.
func settingColumns() []string {
	var columns []string
	for _, s := range sluice.StoredSettings() {
		columns = append(columns, s.Column())
	}
	return columns
}

// assignments begins as the update statement of the queue table does.
func assignments(columns []string) string {
	return fmt.Sprintf("%s = $4::boolean, %s = $5::bigint", columns[0], columns[1])
}

func TestModuleFileIsFitForRelease(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^replace`).Match(text) {
		t.Error("go.mod has a replace: `go install …@latest` would refuse it")
	}
	// SQLite in Go only works with the very libc that it was made with.
	pinned := regexp.MustCompile(`modernc\.org/libc (v\S+)`)
	ours := pinned.FindSubmatch(text)
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "modernc.org/sqlite").Output()
	if err != nil {
		t.Fatal(err)
	}
	theirText, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if theirs := pinned.FindSubmatch(theirText); ours == nil || theirs == nil || !bytes.Equal(ours[1], theirs[1]) {
		t.Errorf("modernc.org/libc is %s, and modernc.org/sqlite needs %s", ours, theirs)
	}
}

// TestDocsAreMadeFromTheCode compares the generated parts of the docs with what the code says.
func TestDocsAreMadeFromTheCode(t *testing.T) {
	docpart.Check(t, *update,
		docpart.Part{Path: "docs/states.md", Name: "moves", Text: movesTable()},
		docpart.Part{Path: "docs/states.md", Name: "drawing", Text: movesDrawing()},
		docpart.Part{Path: "README.md", Name: "drawing", Text: movesDrawing()},
		docpart.Part{Path: "docs/store-rules.md", Name: "rules", Text: storeRules()},
		docpart.Part{Path: "docs/engine-rules.md", Name: "rules", Text: engineRules()},
		docpart.Part{Path: "docs/settings.md", Name: "settings", Text: settingsTable()},
		docpart.Part{Path: "docs/sql.md", Name: "functions", Text: functionsList(t)},
		docpart.Part{Path: "docs/guide/health.md", Name: "health", Text: healthTable()},
		docpart.Part{Path: "docs/alerts.md", Name: "presets", Text: alertPresetsTable()},
		docpart.Part{Path: "docs/alerts.md", Name: "runbooks", Text: alertRunbooks()},
		docpart.Part{Path: "docs/guide/production.md", Name: "paged", Text: pagedRules()},
		docpart.Part{Path: "docs/events.md", Name: "events", Text: eventsTable()},
		docpart.Part{Path: "docs/events.md", Name: "fields", Text: fieldsTable()},
	)
}

func movesTable() string {
	var text strings.Builder
	text.WriteString("| from | event | to | when |\n| --- | --- | --- | --- |\n")
	for _, m := range sluice.Moves() {
		var from []string
		for _, s := range m.From {
			from = append(from, string(s))
		}
		if len(from) == 0 {
			from = []string{"–"}
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", strings.Join(from, ", "), m.Event, m.To, m.When)
	}
	return text.String()
}

func movesDrawing() string {
	var text strings.Builder
	text.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, m := range sluice.Moves() {
		if len(m.From) == 0 {
			fmt.Fprintf(&text, "    [*] --> %s: %s\n", m.To, m.Event)
		}
		for _, from := range m.From {
			fmt.Fprintf(&text, "    %s --> %s: %s\n", from, m.To, m.Event)
		}
	}
	for _, s := range sluice.States() {
		if s.Finished() {
			fmt.Fprintf(&text, "    %s --> [*]\n", s)
		}
	}
	return text.String() + "```\n"
}

// rulesHead begins the tables of rules.
const rulesHead = "| rule | says | because |\n| --- | --- | --- |\n"

func storeRules() string {
	text := rulesHead
	for _, rule := range storetest.Rules() {
		text += fmt.Sprintf("| %s | %s | %s |\n", rule.ID, rule.Summary, rule.Because)
	}
	return text
}

func engineRules() string {
	text := rulesHead
	for _, rule := range enginetest.Rules() {
		text += fmt.Sprintf("| %s | %s | %s |\n", rule.ID, rule.Summary, rule.Because)
	}
	return text
}

// functionsList shows the functions for other languages as they are written.
func functionsList(t *testing.T) string {
	functions, err := postgres.Functions()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	group := ""
	for _, f := range functions {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&text, "### For the %s\n\n", group)
		}
		fmt.Fprintf(&text, "**%s**: %s\n\n```\nsluice.%s\n```\n\n", f.Name, f.Summary, f.Signature)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func settingsTable() string {
	var text strings.Builder
	text.WriteString("| setting | meaning | default |\n| --- | --- | --- |\n")
	for _, s := range sluice.AllSettings() {
		value := s.Format(sluice.DefaultSettings())
		if value == "" {
			value = "–"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", s.Name, s.Meaning, value)
	}
	return text.String()
}
