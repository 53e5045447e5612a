package sluice_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/sluice-queue/sluice/internal/event"
)

// plainWordsFile lists the words of exported names that need no explanation: plain English, Go's terms and product names.
const plainWordsFile = "testdata/plain_words.txt"

// TestWordsOfExportedNamesAreKnown fails if an exported name has a word that docs/words.md does not explain.
func TestWordsOfExportedNamesAreKnown(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, term := range terms(t) {
		for _, word := range nameWords(term) {
			known[stem(word)] = true
		}
	}
	plain := make(map[string]bool)
	for _, word := range plainWords(t) {
		if known[stem(word)] {
			t.Errorf("%s has %q, which docs/words.md explains: keep it in one of them", plainWordsFile, word)
		}
		plain[stem(word)] = true
	}
	used := make(map[string]bool)
	for name, path := range exportedNames(t) {
		for _, word := range nameWords(name) {
			used[stem(word)] = true
			if !known[stem(word)] && !plain[stem(word)] {
				t.Errorf("%s exports %s: explain %q in docs/words.md, or add it to %s if it is plain English", path, name, word, plainWordsFile)
			}
		}
	}
	for word := range plain {
		if !used[word] {
			t.Errorf("%s has %q, which no exported name uses: delete the line", plainWordsFile, word)
		}
	}
}

// TestTermsAreUsed refuses terms in docs/words.md that no user meets.
func TestTermsAreUsed(t *testing.T) {
	t.Parallel()
	met := make(map[string]bool)
	for name := range exportedNames(t) {
		for _, word := range nameWords(name) {
			met[stem(word)] = true
		}
	}
	for _, text := range usersTexts(t) {
		for _, word := range nameWords(text) {
			met[stem(word)] = true
		}
	}
	for _, term := range terms(t) {
		for _, word := range nameWords(term) {
			if !met[stem(word)] {
				t.Errorf("docs/words.md explains %q, but no exported name, setting, command, metric or event has %q", term, word)
			}
		}
	}
}

// usersTexts returns the names of settings, metrics and events, and the usage of the commands.
func usersTexts(t *testing.T) []string {
	t.Helper()
	texts := settingColumns()
	for _, e := range event.All() {
		texts = append(texts, e.Name, e.Fields)
	}
	page, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	texts = append(texts, regexp.MustCompile(`sluice_\w+`).FindAllString(string(page), -1)...)
	page, err = os.ReadFile("docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(texts, regexp.MustCompile(`(?m)^#+ .*|--[a-z-]+`).FindAllString(string(page), -1)...)
}

// terms returns the first column of docs/words.md, a term each.
func terms(t *testing.T) (all []string) {
	t.Helper()
	page, err := os.ReadFile("docs/words.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], " ---") || cells[1] == " word " {
			continue
		}
		all = append(all, regexp.MustCompile(`[,;()`+"`"+`]+`).Split(cells[1], -1)...)
	}
	if len(all) < 50 {
		t.Fatalf("docs/words.md has %d terms", len(all))
	}
	return all
}

func plainWords(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(plainWordsFile)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	if !slices.IsSorted(words) {
		t.Errorf("%s is not in order: sort it", plainWordsFile)
	}
	return words
}

// nameWords splits an identifier or a term into lower-case words: MaxInFlightHTTP is max, in, flight, http.
func nameWords(name string) (words []string) {
	runes := []rune(name)
	begin := 0
	add := func(end int) {
		if word := strings.ToLower(string(runes[begin:end])); word != "" {
			words = append(words, word)
		}
		begin = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			add(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			add(i)
		}
	}
	add(len(runes))
	return words
}

var endings = regexp.MustCompile(`(ings|ing|ed|es|s|e|er|ers|y|ies)$`)

// stem takes a common ending away, so that "claims" and "claimed" are the word "claim".
func stem(word string) string {
	if short := endings.ReplaceAllString(word, ""); len(short) > 2 {
		return short
	}
	return word
}

// exportedNames returns each exported name of the public packages, with a file that has it.
func exportedNames(t *testing.T) map[string]string {
	t.Helper()
	names := make(map[string]string)
	for _, path := range sourceFiles(t, ".go") {
		if !isPublic(path) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, bytes.TrimSpace(text), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			for _, name := range namesOf(decl) {
				names[name] = path
			}
		}
	}
	return names
}

// isPublic reports whether other programs can and may import the package of a file.
func isPublic(path string) bool {
	if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/") {
		return false
	}
	for _, dir := range []string{"apps/", "bench/", "compat/", "deploy/", "docs/", "tools/", "cmd/cli/", "cmd/sluice/"} {
		if strings.HasPrefix(path, dir) {
			return false
		}
	}
	return true
}

// namesOf returns the exported names of a declaration, with fields and methods.
func namesOf(decl ast.Decl) (names []string) {
	add := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			if ident.IsExported() {
				names = append(names, ident.Name)
			}
		}
	}
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv == nil || receiverIsExported(f) {
			add(f.Name)
		}
		return names
	}
	for _, spec := range decl.(*ast.GenDecl).Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			add(spec.Names...)
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			add(spec.Name)
			for _, field := range fieldsOf(spec.Type) {
				add(field.Names...)
			}
		}
	}
	return names
}

// fieldsOf returns the fields of a struct or the methods of an interface.
func fieldsOf(kind ast.Expr) []*ast.Field {
	switch kind := kind.(type) {
	case *ast.StructType:
		return kind.Fields.List
	case *ast.InterfaceType:
		return kind.Methods.List
	}
	return nil
}
