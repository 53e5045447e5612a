package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice/internal/columns"
)

// claimPlaceholders are the columns of the claim statements, for the functions that claim. Attempts is the default of
// max_attempts.
func claimPlaceholders(attempts string) map[string]string {
	claimed := slices.Concat(jobColumns["claimed"], jobColumns["given"], jobColumns["more"])
	names := claimed.Join(func(c columns.Column) string { return c.Name })
	return map[string]string{
		"columns":      claimed.Join(func(c columns.Column) string { return c.Name + " " + c.Type }),
		"column names": names,
		"row columns":  claimed.Join(func(c columns.Column) string { return "row." + c.Name }),
		"answer names": "queue, token, attempt, attempts_left, start_at, " + names,
		"answer": "row.queue, row.token, row.attempts + 1, greatest(1, coalesce(row.max_attempts, settings.attempts, " + attempts +
			") - row.attempts), greatest(row.due_at, row.claimed_at) + random() * coalesce(settings.jitter_ms, 0) * interval '1 millisecond', " +
			claimed.Join(answerOf),
	}
}

// answerOf is the expression that the function claim returns for a column.
func answerOf(c columns.Column) string {
	switch {
	case c.Type == "bytea":
		return "sluice._json(row." + c.Name + ")"
	case c.Name == "tenant":
		return "nullif(row.tenant, '')"
	default:
		return "row." + c.Name
	}
}

// enqueuePlaceholders are the arguments of the function enqueue that describe the job, for the functions that pass
// them on.
func enqueuePlaceholders(functions []Function) map[string]string {
	i := slices.IndexFunc(functions, func(f Function) bool { return f.Name == "enqueue" })
	inside, _, _ := strings.Cut(schemaComment.ReplaceAllString(functions[i].Signature, ""), ")")
	_, inside, _ = strings.Cut(inside, "(")
	var arguments columns.List
	var reads, edits []string
	for argument := range strings.SplitSeq(inside, ",") {
		declared, initial, _ := strings.Cut(argument, " default ")
		words := strings.Fields(declared)
		if words[0] != "new_queue" {
			arguments = append(arguments, columns.Column{Name: words[0], Type: strings.Join(words[1:], " ")})
			reads = append(reads, readArgument(arguments[len(arguments)-1], initial))
			edits = append(edits, editArgument(arguments[len(arguments)-1], initial))
		}
	}
	return map[string]string{
		"enqueue arguments":     arguments.Join(func(c columns.Column) string { return c.Name + " " + c.Type }),
		"enqueue results":       arguments.Join(func(c columns.Column) string { return "out " + c.Name + " " + c.Type }),
		"enqueue values":        arguments.Join(func(c columns.Column) string { return c.Name }),
		"enqueue values of job": arguments.Join(func(c columns.Column) string { return "job." + c.Name }),
		"enqueue reads":         strings.Join(slices.DeleteFunc(reads, func(read string) bool { return read == "" }), "\n    "),
		"edit values":           strings.Join(edits, ", "),
		"enqueue names":         arguments.Join(func(c columns.Column) string { return literal(c.Name) }),
	}
}

// readArgument reads an argument of enqueue from a job of a batch. An array gives the empty text: it takes more than
// a cast.
func readArgument(argument columns.Column, initial string) string {
	value := fmt.Sprintf("(job ->> %s)::%s", literal(argument.Name), argument.Type)
	switch {
	case strings.HasSuffix(argument.Type, "[]"):
		return ""
	case argument.Type == "json":
		value = "job -> " + literal(argument.Name)
	case argument.Type == "jsonb":
		value = fmt.Sprintf("(job -> %s)::jsonb", literal(argument.Name))
	case argument.Type == "text":
		value = "job ->> " + literal(argument.Name)
	}
	if initial = strings.TrimSpace(initial); initial != "" && initial != "null" {
		value = fmt.Sprintf("coalesce(%s, %s)", value, initial)
	}
	return argument.Name + " := " + value + ";"
}

// editable are the arguments of enqueue that describe a job as it is after an edit. The others say nothing there.
var editable = []string{"queue", "payload", "tenant", "due_at", "priority", "labels", "timeout", "limit_key", "cost"}

// editArgument is the argument of a check of the function edit: a variable of it, or the default of enqueue.
func editArgument(argument columns.Column, initial string) string {
	if slices.Contains(editable, argument.Name) {
		return argument.Name
	}
	return cmp.Or(strings.TrimSpace(initial), "null") + "::" + argument.Type
}
