package cli_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// troublePage renders the guide from the table, sorted by the symptom.
func troublePage(rows []trouble) string {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b trouble) int { return cmp.Compare(a.sees, b.sees) })
	var page strings.Builder
	page.WriteString(`# Guide: when it goes wrong

<!-- made from the table of troubles in cmd/cli/trouble_*_test.go by make docs -->

Ask in this order:

` + "```sh\nsluice why JOB                    # why a job does not run, or does not end\nsluice doctor                     # what is wrong with the store and the work\nsluice doctor --temporal HOST:PORT # the same, and what the engine says\nsluice holders                    # which processes run, and what keeps them from their work\n```" + `

A test causes each trouble below. Other signs are:

- broken rules of [alerts](../alerts.md), later; "no store": no process can evaluate rules
- ` + "`/readyz`" + `: failed checks, of which [some only warn](production.md#http-endpoints); "serve ends": ` + "`sluice serve` does not start" + `
- log: part of a line at WARN or ERROR
`)
	sees := ""
	for _, row := range rows {
		if row.sees != sees {
			sees = row.sees
			fmt.Fprintf(&page, "\n## %s\n\n| cause | ask `sluice`: answer | repair | other signs |\n| --- | --- | --- | --- |\n", sees)
		}
		fmt.Fprintf(&page, "| %s | `%s`: %s | %s | %s |\n", row.cause, asked(row.asks), cell(plainPattern(row.says)), cell(row.mend), signs(row))
	}
	return page.String()
}

// signs lists the alerts, the failed checks of /readyz and the log line of a trouble; empty: it has none.
func signs(row trouble) string {
	var all []string
	for _, sign := range []struct{ of, is string }{{"", linked(row.alert)}, {"`/readyz`: ", checks(row.unready)}, {"log: ", cell(row.log)}} {
		if sign.is != "–" {
			all = append(all, sign.of+sign.is)
		}
	}
	return strings.Join(all, "; ")
}

func asked(command string) string {
	if command == "why" {
		return "why JOB"
	}
	return command
}

// plainPattern turns a regular expression into text for readers.
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
