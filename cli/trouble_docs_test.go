package cli_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// troublePage renders the guide from the table: by what a person sees.
func troublePage(rows []trouble) string {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b trouble) int { return cmp.Compare(a.sees, b.sees) })
	var page strings.Builder
	page.WriteString(`# Guide: when it goes wrong

<!-- made from the table of troubles in cli/trouble_*_test.go; «make docs» writes it -->

Ask in this order. Each command names the cause and the command that mends it.

` + "```sh\nsluice why JOB                    # why a job does not run, or does not end\nsluice doctor                     # what is wrong with the store and the work\nsluice doctor --temporal HOST:PORT # the same, and what the engine says\nsluice holders                    # which processes run, and what keeps them from their work\n```" + `

Find what you see below. A test causes each of these troubles and asks these commands, the [alerts](../alerts.md), ` + "`/readyz` of `sluice serve`" + ` and the log.

| column | in it |
| --- | --- |
| alert | the rules that are broken, and go off once that has lasted. –: none is. no store: nobody can look, because the store cannot be opened |
` + "| `/readyz` fails | the checks that are not well; [some are only told](production.md). –: each is well. serve ends: `sluice serve` does not start, and says why |\n| log | a part of a line that a process logs, `sluice serve` where no store can be opened. –: no process logs a line at WARN or ERROR |" + `
`)
	sees := ""
	for _, row := range rows {
		if row.sees != sees {
			sees = row.sees
			fmt.Fprintf(&page, "\n## %s\n\n| cause | ask | it says | what mends it | alert | `/readyz` fails | log |\n| --- | --- | --- | --- | --- | --- | --- |\n", sees)
		}
		fmt.Fprintf(&page, "| %s | `sluice %s` | %s | %s | %s | %s | %s |\n", row.cause, asked(row.asks), cell(plainPattern(row.says)), cell(row.mend), linked(row.alert), checks(row.unready), cell(row.log))
	}
	return page.String()
}

func asked(command string) string {
	if command == "why" {
		return "why JOB"
	}
	return command
}

// plainPattern writes a pattern as people read it.
func plainPattern(pattern string) string {
	text := regexp.MustCompile(`\.\*`).ReplaceAllString(pattern, "…")
	return strings.NewReplacer(`\`, "", " +", " ").Replace(text)
}

func cell(text string) string {
	if text == "" {
		return "–"
	}
	return "`" + strings.ReplaceAll(strings.TrimSpace(text), "|", "\\|") + "`"
}

func linked(rules string) string {
	if rules == "" || rules == noStore {
		return cmp.Or(rules, "–")
	}
	all := strings.Fields(rules)
	for i, rule := range all {
		all[i] = fmt.Sprintf("[`%s`](../alerts.md#%s)", rule, rule)
	}
	return strings.Join(all, ", ")
}

func checks(names string) string {
	if names == "" || names == serveEnds {
		return cmp.Or(names, "–")
	}
	return "`" + strings.ReplaceAll(names, " ", "`, `") + "`"
}
