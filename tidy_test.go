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

// assignments returns the begin of the statement that updates the queue table.
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
	// SQLite in Go only works with the version of libc that it was made with.
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

// TestDocsAreMadeFromTheCode compares the generated parts of the docs with the code.
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

// rulesHead is the head of the tables of rules.
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

// functionsList lists the declarations of the functions for other languages.
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
