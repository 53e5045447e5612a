package sluice_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/sluice-queue/sluice/internal/event"
)

// mostWords is the length of a sentence that a reader follows at once.
const mostWords = 25

// handWritten lists the pages of the documentation that people write. The changelog keeps the words of its time.
func handWritten(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "docs/guide/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no page is %s: %v", pattern, err)
		}
		for _, path := range found {
			if path != "docs/cli.md" { // made of the help of the commands
				pages = append(pages, path)
			}
		}
	}
	return pages
}

var (
	generatedPart = regexp.MustCompile(`(?s)<!-- begin .*?<!-- end[^>]*-->`)
	codeBlock     = regexp.MustCompile("(?s)```.*?```")
	wholeMade     = regexp.MustCompile(`(?i)do not edit`)
	link          = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	inlineCode    = regexp.MustCompile("`[^`]*`")
	marks         = regexp.MustCompile(`[*_]{1,2}`)
	sentenceEnd   = regexp.MustCompile(`[.!?:;]["')]*\s+`)
	emptyHead     = regexp.MustCompile(`^(What|Who|That|Those|Where)\b`)
	numbered      = regexp.MustCompile(`^\d+\. `)
	numberOfOurs  = regexp.MustCompile(`\b[A-EHI]-\d{1,3}\b`)
	digitsJoined  = regexp.MustCompile(`(^|[\s(])\d+(ms|s|min|h|MB|GB|KB|%)(\s|[.,;:)]|$)`)
)

// prose returns the paragraphs, list items and table cells of a page, without code.
func prose(page string) []string {
	page = codeBlock.ReplaceAllString(generatedPart.ReplaceAllString(page, ""), "\n\n")
	page = link.ReplaceAllString(page, "$1")
	var all []string
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			all = append(all, strings.Join(paragraph, " "))
		}
		paragraph = nil
	}
	for _, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "<"):
			flush()
		case strings.HasPrefix(trimmed, "|"):
			flush()
			all = append(all, strings.Split(strings.Trim(trimmed, "|"), "|")...)
		case strings.HasPrefix(trimmed, "- "), strings.HasPrefix(trimmed, "* "), numbered.MatchString(trimmed):
			flush()
			paragraph = append(paragraph, strings.TrimLeft(trimmed, "-*0123456789. "))
		default:
			paragraph = append(paragraph, trimmed)
		}
	}
	flush()
	return all
}

// sentences splits a paragraph. Inline code counts as one word.
func sentences(paragraph string) []string {
	text := marks.ReplaceAllString(inlineCode.ReplaceAllString(paragraph, "`code`"), "")
	var all []string
	for {
		end := sentenceEnd.FindStringIndex(text)
		if end == nil {
			break
		}
		all = append(all, strings.TrimSpace(text[:end[1]]))
		text = text[end[1]:]
	}
	return append(all, strings.TrimSpace(text))
}

func TestPagesAreInPlainEnglish(t *testing.T) {
	t.Parallel()
	for _, path := range handWritten(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if wholeMade.Match(text) {
			continue
		}
		for _, paragraph := range prose(string(text)) {
			for _, fault := range faultsOf(paragraph) {
				t.Errorf("%s: %s", path, fault)
			}
		}
	}
}

// TestLogEventsAreInPlainEnglish checks the texts that explain log lines, which docs/events.md shows.
func TestLogEventsAreInPlainEnglish(t *testing.T) {
	t.Parallel()
	for _, e := range event.All() {
		for _, fault := range append(faultsOf(e.Name), faultsOf(e.When)...) {
			t.Errorf("event %q: %s", e.Name, fault)
		}
		if !strings.HasSuffix(e.When, ".") || emptyHead.MatchString(e.When) {
			t.Errorf("event %q: %q must be sentences that name an actor", e.Name, e.When)
		}
	}
	for _, f := range event.Fields() {
		if faults := faultsOf(f.Meaning); len(faults) > 0 || riddle.MatchString(f.Meaning) {
			t.Errorf("field %s: name the thing, such as `the job's tenant`: %s %v", f.Name, f.Meaning, faults)
		}
	}
}

// typedValue is an example or a default of a value that a user types, such as `10%`, in a help text that has no backticks.
var typedValue = regexp.MustCompile(`(such as|:|every|or) \d+[a-z%]+|(?:^|\s)0s\b`)

// TestHelpIsInPlainEnglish checks the help of the commands on the page that is made of it.
func TestHelpIsInPlainEnglish(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, paragraph := range prose(string(page)) {
		for _, fault := range faultsOf(typedValue.ReplaceAllString(strings.TrimSpace(paragraph), "$1 `code`")) {
			t.Errorf("the help of a command: %s", fault)
		}
	}
}

// parameters begins the list of a statement's arguments in a comment, such as `$1 text queue` or `?1 queue`.
var parameters = regexp.MustCompile(`^[$?]\d`)

// sqlComment is a comment of a line of SQL, alone or behind code.
var sqlComment = regexp.MustCompile(`^\s*--\s+(.*)$|\s--\s(.*)$`)

// sqlProse returns the paragraphs of the comments of a file of SQL, without the lists of arguments. Such a list goes on in
// lines that begin without a capital letter.
func sqlProse(text string) (all []string) {
	var paragraph []string
	inList := false
	flush := func() {
		all = append(all, strings.Join(paragraph, " "))
		paragraph, inList = nil, false
	}
	for line := range strings.Lines(text) {
		comment := sqlComment.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if comment == nil {
			flush()
			continue
		}
		words := strings.TrimSpace(comment[1] + comment[2])
		inList = parameters.MatchString(words) || inList && !unicode.IsUpper([]rune(words + " ")[0])
		if comment[2] != "" {
			flush()
		}
		if !inList {
			paragraph = append(paragraph, words)
		}
	}
	flush()
	return all
}

// TestSQLCommentsAreInPlainEnglish checks the comments of the statements and functions, which a DBA reads.
func TestSQLCommentsAreInPlainEnglish(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, folder := range []string{"store/postgres/functions", "store/postgres/functions/inner", "store/postgres/sql", "store/sqlite/sql"} {
		paths, err := filepath.Glob(folder + "/*.sql")
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no SQL: %v", folder, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, paragraph := range sqlProse(string(text)) {
				seen += len(paragraph)
				for _, fault := range faultsOf(paragraph) {
					t.Errorf("%s: %s", path, fault)
				}
			}
		}
	}
	if seen < 50_000 {
		t.Errorf("the test found %d bytes of comments in SQL, too few", seen)
	}
}

// riddle begins a meaning that asks instead of naming the thing.
var riddle = regexp.MustCompile(`^(what|who|whom|where|when|why|how|which|that|those|its?)\b`)

// faultsOf names the rules that a paragraph breaks.
func faultsOf(paragraph string) (faults []string) {
	plain := inlineCode.ReplaceAllString(paragraph, "`code`")
	if strings.ContainsAny(plain, "«»") {
		faults = append(faults, "guillemets; write backticks for code and straight quotes for words: "+paragraph)
	}
	if number := numberOfOurs.FindString(plain); number != "" {
		faults = append(faults, number+" is a number of our own, which a reader cannot look up: "+paragraph)
	}
	if joined := digitsJoined.FindString(plain); joined != "" {
		faults = append(faults, strings.TrimSpace(joined)+" needs a space before its unit: "+paragraph)
	}
	for _, sentence := range sentences(paragraph) {
		if n := len(strings.Fields(sentence)); n > mostWords {
			faults = append(faults, fmt.Sprintf("a sentence has %d words, at most %d: %s", n, mostWords, sentence))
		}
		if emptyHead.MatchString(sentence) && !strings.HasSuffix(sentence, "?") {
			faults = append(faults, "a sentence begins with an empty head; name the actor: "+sentence)
		}
	}
	return faults
}

// TestCommentsOfTestsAreInPlainEnglish checks the comments of all tests and helpers of the released modules.
func TestCommentsOfTestsAreInPlainEnglish(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, path := range sourceFiles(t, "_test.go") {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, comment := range parsed.Comments {
			if isOutput.MatchString(comment.Text()) {
				continue
			}
			for _, paragraph := range prose(comment.Text()) {
				checked++
				for _, fault := range faultsOf(paragraph) {
					t.Errorf("%s: %s", files.Position(comment.Pos()), fault)
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("checked %d paragraphs of comments, want at least 1,000", checked)
	}
}

// isOutput finds the comment of an example that has the output of the example, which is no prose.
var isOutput = regexp.MustCompile(`(?i)^(unordered )?output:`)
