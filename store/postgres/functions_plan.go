package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Sessions of programs in other languages keep the plans of frequent statements, as a store's connections do. In a
// function, PostgreSQL keeps the plan of a statement that is part of the function's text. A statement that
// `execute` runs is planned each time. Each statement is written once: keepPlans replaces `execute {{claim.sql}}
// using …` in a template by the statement itself, with variables for its arguments.

// keptInFunctions are statements that only the functions run for each claim or enqueue.
var keptInFunctions = setOf(lateSQL, permitsSQL, startedSQL, startedAddSQL, queuePolicySQL, waitingJobsSQL, waitingJobsTenantSQL)

// walking is the `set` clauses of a function whose statements keep their plans, or that programs call. They are the
// settings of statements whose plans a store keeps, and they also apply to functions that the function calls.
// Incremental sorts are missing: older servers do not know the setting, so finishFunctions adds it.
var walking = sync.OnceValue(func() string {
	var out strings.Builder
	for _, setting := range planWords().setting.FindAllStringSubmatch(walkKeptSQL, -1) {
		if setting[1] != "enable_incremental_sort" {
			fmt.Fprintf(&out, "set %s = %s ", setting[1], setting[2])
		}
	}
	return out.String()
})

// planWords holds the patterns of keepPlans, compiled on first use: few programs create functions.
var planWords = sync.OnceValue(func() (w struct{ start, body, executed, named, argument, setting *regexp.Regexp }) {
	w.start = regexp.MustCompile(`(?m)^create or replace function `)
	w.body = regexp.MustCompile(`(?s)^(.*?)(as \$function\$\n)(declare\n)?(.*)$`)
	// The groups: a loop or `return query`, the statement, the text after it, the target of its row, its arguments,
	// its end.
	w.executed = regexp.MustCompile(`(?s)((?:for [^;]{1,400}? in\s+)?(?:return query )?)execute \{\{(\w+\.sql)\}\}(?: \|\| '([^']*)')?(\s+into [^;]*?)?\s+using\s+([^;]*?)(;|\s+loop\n)`)
	w.setting = regexp.MustCompile(`set_config\('(\w+)', '(\w+)', true\)`)
	w.named = regexp.MustCompile(`\{\{(\w+\.sql)\}\}`)
	w.argument = regexp.MustCompile(`\$(\d+)::((?:double precision|\w+)(?:\[\])?)`)
	return w
})

// keepPlans puts the statements whose plans are kept into the text of functions. Called means that programs call
// the functions.
func keepPlans(template string, called bool) (string, error) {
	starts := planWords().start.FindAllStringIndex(template, -1)
	if starts == nil {
		return template, nil
	}
	var out strings.Builder
	out.WriteString(template[:starts[0][0]])
	for i, start := range starts {
		end := len(template)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		function, err := keepPlansOf(template[start[0]:end], called)
		if err != nil {
			return "", err
		}
		out.WriteString(function)
	}
	return out.String(), nil
}

func keepPlansOf(function string, called bool) (string, error) {
	words := planWords()
	var declared, failed []string
	body := words.executed.ReplaceAllStringFunc(function, func(found string) string {
		parts := words.executed.FindStringSubmatch(found)
		before, name, behind, into, arguments, after := parts[1], parts[2], parts[3], parts[4], splitArguments(parts[5]), parts[6]
		text := keptStatement(name)
		if text == "" {
			return found
		}
		text = schemaComment.ReplaceAllString(text, "")
		prefix := fmt.Sprintf("given_%s_%d_", strings.TrimSuffix(name, ".sql"), len(declared))
		types := make(map[string]string)
		text = words.argument.ReplaceAllStringFunc(text, func(said string) string {
			no, kind := words.argument.FindStringSubmatch(said)[1], words.argument.FindStringSubmatch(said)[2]
			types[no] = kind
			return prefix + no
		})
		var set strings.Builder
		for i, value := range arguments {
			no := fmt.Sprint(i + 1)
			if types[no] == "" {
				failed = append(failed, fmt.Sprintf("%s has no argument $%s of a type", name, no))
				continue
			}
			declared = append(declared, fmt.Sprintf("    %s%s %s;\n", prefix, no, types[no]))
			fmt.Fprintf(&set, "%s%s := %s; ", prefix, no, value)
		}
		if strings.Contains(text, "$") || len(arguments) != len(types) {
			failed = append(failed, fmt.Sprintf("%s wants other arguments than %q", name, parts[5]))
		}
		return set.String() + "\n" + before + strings.TrimSpace(text) + behind + into + after
	})
	for _, left := range words.named.FindAllStringSubmatch(body, -1) {
		if keptStatement(left[1]) != "" {
			failed = append(failed, left[1]+" is run in a way that keeps no plan")
		}
	}
	if failed != nil {
		return "", fmt.Errorf("%s", strings.Join(failed, "; "))
	}
	parts := words.body.FindStringSubmatch(body)
	switch {
	case declared == nil && (!called || parts == nil):
		return function, nil
	case declared == nil:
		return parts[1] + walking() + parts[2] + parts[3] + parts[4], nil
	case parts == nil:
		return "", fmt.Errorf("the body of %.80q was not found", body)
	}
	// In a statement, a name is first the name of a column, as if the statement stood alone.
	return parts[1] + walking() + parts[2] + "#variable_conflict use_column\ndeclare\n" + strings.Join(declared, "") + parts[4], nil
}

// keptStatement returns the text of a statement whose plan functions keep, by the name of its file. Other names
// give an empty text.
func keptStatement(name string) string {
	text, err := statementOf(name)
	if err != nil || !perJob[text] && !keptInFunctions[text] {
		return ""
	}
	return text
}

// splitArguments splits a list at the commas outside parentheses, brackets and strings.
func splitArguments(list string) []string {
	var out []string
	depth, quoted, from := 0, false, 0
	for i, c := range list {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(list[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(list[from:]))
}
