package apptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	aTest   = regexp.MustCompile("`(Test\\w+)`")
	aRule   = regexp.MustCompile(`\b[RE]-\d+\b`)
	aScript = regexp.MustCompile("`(cmd/cli/testdata/script/\\w+\\.txt)`")
	aLine   = regexp.MustCompile(`demo: "([^"]+)"`)
)

// ProofsExist looks at the tables of an application's README whose last column is its proofs: each row must name at least
// one test of the application's module or of Sluice's, rule of a store or an engine (E-1), script of the command, or
// line of the demo (demo: "…"), and all that it names must be there. Root is the folder of Sluice, app that of the
// application.
func ProofsExist(t testing.TB, root, app string) {
	t.Helper()
	rows := proofs(read(t, filepath.Join(app, "README.md")))
	if len(rows) == 0 {
		t.Fatal("no table of the README has proofs")
	}
	tests := texts(t, app, "_test.go")
	for _, module := range []string{"", "cmd", "engine/temporal"} {
		tests += texts(t, filepath.Join(root, module), "_test.go")
	}
	rules := read(t, filepath.Join(root, "docs/store-rules.md")) + read(t, filepath.Join(root, "docs/engine-rules.md"))
	code := texts(t, app, ".go")
	for row, proof := range rows {
		named := 0
		look := func(what *regexp.Regexp, is func(name string) bool) {
			for _, found := range what.FindAllStringSubmatch(proof, -1) {
				named++
				if name := found[len(found)-1]; !is(name) {
					t.Errorf("%s: its proof %s is not there", row, name)
				}
			}
		}
		look(aTest, func(name string) bool { return strings.Contains(tests, "\nfunc "+name+"(") })
		look(aRule, func(name string) bool { return strings.Contains(rules, "\n| "+name+" |") })
		look(aLine, func(name string) bool { return strings.Contains(code, name) })
		look(aScript, func(name string) bool {
			_, err := os.Stat(filepath.Join(root, name))
			return err == nil
		})
		if named == 0 {
			t.Errorf("%s: the row names no proof", row)
		}
	}
}

// proofs gives the last cells of rows by their first, of the tables whose last column is the proofs.
func proofs(text string) map[string]string {
	rows := make(map[string]string)
	within := false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			within = false
		case strings.HasPrefix(last, "proof"):
			within = true
		case within && !strings.HasPrefix(last, "---"):
			rows[strings.TrimSpace(cells[0])] = last
		}
	}
	return rows
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// texts gives the files of a module whose names end so.
func texts(t testing.TB, module, suffix string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(module, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != module {
			_, other := os.Stat(filepath.Join(path, "go.mod"))
			if other == nil || strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(path, suffix) {
			all.WriteString("\n" + read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
