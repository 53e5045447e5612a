// Package follow reads and checks the statements of followers, for all stores. A follower is a SQL
// statement of the user that runs with each move of a queue's jobs.
//
// Begin with [Check], which applies the rules of all stores. [Expand] puts a store's [Expressions]
// in place of the columns of `moved`. The stores create the triggers.
//
// Read next: docs/guide/follow.md, and follow.go of packages sqlite and postgres.
package follow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-queue/sluice"
)

// maxStatement is the longest statement, in bytes.
const maxStatement = 10_000

var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,29}$`) })

var verbs = []string{"update", "insert", "delete"}

// Columns lists the columns of moved, in the order in which sluice.Follower documents them.
func Columns() []string {
	return []string{"id", "key", "queue", "tenant", "generation", "state", "attempts", "error", "ref", "at"}
}

// Expressions are the columns of moved in the SQL of a store.
type Expressions map[string]string

// Sample returns expressions for a move of no job, with the right types.
func Sample() Expressions {
	text := func(value string) string { return "cast('" + value + "' as text)" }
	number := func(value string) string { return "cast(" + value + " as bigint)" }
	return Expressions{
		"id": text("00000000-0000-0000-0000-000000000000"), "key": text(""), "queue": text("queue"), "tenant": text(""),
		"generation": "cast(1 as integer)", "state": text(string(sluice.StateCompleted)), "attempts": "cast(0 as integer)",
		"error": text(""), "ref": text(""), "at": number("0"),
	}
}

// CheckName returns a [sluice.ErrInvalid] if a follower must not have this name.
func CheckName(of string) error {
	if !name().MatchString(of) {
		return invalid("name", "%.60q must be a lower-case letter, then up to 29 lower-case letters, digits and _", of)
	}
	return nil
}

// Check returns a [sluice.ErrInvalid] if a follower breaks a rule that is the same in all stores.
// Ours reports whether a name in the statement is a table of Sluice.
func Check(f sluice.Follower, ours func(name string) bool) error {
	if err := CheckName(f.Name); err != nil {
		return err
	}
	if err := sluice.CheckQueueName(f.Queue); err != nil {
		return err
	}
	for _, state := range f.States {
		if !slices.Contains(sluice.States(), state) {
			return invalid("states", "%.40q must be one of the seven states, such as %s", state, sluice.StateDead)
		}
	}
	if len(f.Statement) > maxStatement {
		return invalid("statement", "%d bytes must be at most %d", len(f.Statement), maxStatement)
	}
	tokens, err := read(f.Statement)
	if err != nil {
		return err
	}
	return checkTokens(tokens, ours)
}

func checkTokens(tokens []token, ours func(name string) bool) error {
	words := slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.kind == blank })
	if len(words) == 0 || !slices.Contains(verbs, strings.ToLower(words[0].text)) {
		return invalid("statement", "it must begin with update, insert or delete")
	}
	for i, t := range words {
		last := i == len(words)-1
		switch {
		case t.text == ";" && !last:
			return invalid("statement", "it must be one statement; after the semicolon comes %.40q", words[i+1].text)
		case strings.HasPrefix(t.text, "$"):
			return invalid("statement", "it has no parameters and no dollar quotes: %.40q", t.text)
		case t.kind == moved && !slices.Contains(Columns(), t.name):
			return invalid("statement", "moved has no column %.40q, but %s", t.name, strings.Join(Columns(), ", "))
		case t.name == "sluice" && !last && words[i+1].text == ".", t.name != "" && t.kind != moved && ours(t.name):
			return invalid("statement", "it must leave Sluice's own tables alone; it names %.60q", t.text)
		}
	}
	return nil
}

// Expand returns a checked follower's statement, with expressions in place of the columns of moved.
func Expand(statement string, with Expressions) string {
	tokens, err := read(statement)
	if err != nil {
		return statement // cannot happen: the statement was checked
	}
	var out strings.Builder
	for _, t := range tokens {
		switch {
		case t.kind == moved:
			out.WriteString(with[t.name])
		case t.text == ";":
		case strings.HasPrefix(t.text, "--"), strings.HasPrefix(t.text, "/*"):
			out.WriteByte(' ')
		default:
			out.WriteString(t.text)
		}
	}
	return strings.TrimSpace(out.String())
}

// When returns the condition on queue and state under which a follower's statement runs.
func When(f sluice.Follower, queue, state string) string {
	condition := queue + " = " + Literal(f.Queue)
	if len(f.States) == 0 {
		return condition
	}
	var states []string
	for _, s := range sluice.States() {
		if slices.Contains(f.States, s) {
			states = append(states, Literal(string(s)))
		}
	}
	return condition + " and " + state + " in (" + strings.Join(states, ", ") + ")"
}

// Literal quotes a text for SQL.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Same reports whether two followers are equal.
func Same(a, b sluice.Follower) bool {
	return a.Name == b.Name && a.Queue == b.Queue && a.Statement == b.Statement && StatesText(a) == StatesText(b)
}

// StatesText formats the states of a follower for the store, in the order of a job's life. Empty:
// all.
func StatesText(f sluice.Follower) string {
	var out []string
	for _, s := range sluice.States() {
		if slices.Contains(f.States, s) {
			out = append(out, string(s))
		}
	}
	return strings.Join(out, ",")
}

// StatesOf parses the result of StatesText.
func StatesOf(text string) []sluice.State {
	var out []sluice.State
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		out = append(out, sluice.State(s))
	}
	return out
}

// Refused is the error for a statement that a store cannot run.
func Refused(err error) error { return invalid("statement", "the store cannot run it: %v", err) }

func invalid(field, rule string, args ...any) error {
	return &sluice.InvalidError{Field: "follower's " + field, Rule: fmt.Sprintf(rule, args...)}
}
