package cli_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice/cmd/cli"
)

// update writes docs/cli.md: go test ./cmd/cli -run TestDocs -update.
var update = flag.Bool("update", false, "write the generated docs")

// commands lists a command and all visible commands below it.
func commands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, child := range root.Commands() {
		if !child.Hidden && root.Name() != "completion" {
			all = append(all, commands(child)...)
		}
	}
	return all
}

func TestDocsOfTheCommandLineAreMadeFromTheCode(t *testing.T) {
	t.Parallel()
	const path = "../../docs/cli.md"
	page := cliPage(cli.Root())
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page {
		t.Errorf("%s is not what the code says; run `make docs`", path)
	}
}

// cliPage renders all commands on one page.
func cliPage(root *cobra.Command) string {
	var page strings.Builder
	page.WriteString(`# Command line

<!-- made from the code; "make docs" writes it -->

One program, ` + "`sluice`" + `. It talks to the store directly; ` + "`--db` or `SLUICE_DB`" + ` names it, as ` + "`sqlite:PATH` or `postgres://USER@HOST/DATABASE`" + `. Data goes to standard output, all else (notes, progress, logs, errors) to standard error. An error is three lines: what failed, why, and what to do.

`)
	for _, group := range append(root.Groups(), nil) {
		for _, command := range root.Commands() {
			if group != nil && command.GroupID == group.ID && !command.Hidden {
				fmt.Fprintf(&page, "- [`%s`](#%s) %s\n", command.CommandPath(), anchor(command), lower(command.Short))
			}
		}
	}
	page.WriteString("\n## Flags of every command\n\n")
	flagTable(&page, root.PersistentFlags())
	page.WriteString("\nDurations are written as `500ms`, `30s`, `5m`, `2h` or `7d`, instants with their zone, as `2026-12-01T16:00:00Z`.\n\n## Exit codes\n\n| code | name | meaning |\n| ---: | --- | --- |\n")
	for _, c := range cli.ExitCodes() {
		fmt.Fprintf(&page, "| %d | %s | %s |\n", c.Code, c.Name, c.Meaning)
	}
	for _, group := range root.Groups() {
		fmt.Fprintf(&page, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, command := range root.Commands() {
			if command.GroupID == group.ID && !command.Hidden {
				for _, c := range commands(command) {
					section(&page, c)
				}
			}
		}
	}
	return page.String()
}

func anchor(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

func section(page *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(page, "\n### %s\n\n%s.\n\n", command.CommandPath(), command.Short)
	use := command.Use
	if command.HasParent() {
		use = command.Parent().CommandPath() + " " + command.Use
	}
	fmt.Fprintf(page, "```\n%s\n```\n", use)
	if command.Long != "" {
		fmt.Fprintf(page, "\n%s\n", asMarkdown(command.Long))
	}
	if command.LocalNonPersistentFlags().HasAvailableFlags() {
		page.WriteString("\n")
		flagTable(page, command.LocalNonPersistentFlags())
	}
	if command.Example != "" {
		fmt.Fprintf(page, "\n```sh\n%s\n```\n", regexp.MustCompile(`(?m)^  `).ReplaceAllString(command.Example, ""))
	}
}

// asMarkdown puts the indented paragraphs of a help text into code blocks.
func asMarkdown(long string) string {
	paragraphs := strings.Split(strings.TrimSpace(long), "\n\n")
	for i, text := range paragraphs {
		if head, list, found := strings.Cut(text, ":\n  "); found { // a list directly below its title
			text = "  " + list
			paragraphs[i] = head + ":\n\n" + fenced(text)
		} else if strings.HasPrefix(text, "  ") {
			paragraphs[i] = fenced(text)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func fenced(text string) string {
	return "```\n" + regexp.MustCompile(`(?m)^  `).ReplaceAllString(text, "") + "\n```"
}

func flagTable(page *strings.Builder, flags *pflag.FlagSet) {
	page.WriteString("| flag | default | meaning |\n| --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := f.DefValue
		if value == "" || value == "[]" || value == "false" || value == "0" {
			value = ""
		} else {
			value = "`" + value + "`"
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
}

func TestDocsOfEveryCommandAndFlagAreThere(t *testing.T) {
	t.Parallel()
	for _, command := range commands(cli.Root()) {
		path := command.CommandPath()
		if command.Short == "" || strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: the short text is %q", path, command.Short)
		}
		if command.HasParent() && command.Example == "" {
			t.Errorf("%s has no example", path)
		}
		if command.RunE == nil && command.Run == nil {
			t.Errorf("%s does nothing", path)
		}
		command.Flags().VisitAll(func(f *pflag.Flag) {
			if len(f.Usage) < 8 || strings.HasSuffix(f.Usage, ".") || f.Usage[0] >= 'A' && f.Usage[0] <= 'Z' {
				t.Errorf("%s --%s: the text is %q", path, f.Name, f.Usage)
			}
		})
	}
}

// documented matches a `sluice` command in running text or code. The match goes from the word sluice to the end of the
// line, the inline code or the shell command.
var documented = regexp.MustCompile("(?m)(?:^\\s*(?:\\$ )?|[`«|(] ?|&& |<\\()(sluice [a-z-][^`»\\n]*)")

// TestDocsNameOnlyCommandsThatAreThere parses every command line of the docs, the examples and the texts in this
// package. The command, its flags and the number of its arguments must be right.
func TestDocsNameOnlyCommandsThatAreThere(t *testing.T) {
	t.Parallel()
	checked := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".md") && (filepath.Dir(path) != "../../cmd/cli" || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go")) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range documented.FindAllStringSubmatch(string(text), -1) {
			for _, line := range strings.Split(found[1], " | ") {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "sluice ") && strings.HasSuffix(path, ".md") || strings.HasPrefix(found[0], "«") {
					checked++
					if err := parses(line); err != nil {
						t.Errorf("%s: %s: %v", path, line, err)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands(cli.Root()) {
		for line := range strings.Lines(command.Example) {
			for _, part := range regexp.MustCompile(` \| |<\(|\)$| > `).Split(strings.TrimSpace(line), -1) {
				if strings.HasPrefix(part, "sluice ") {
					checked++
					if err := parses(part); err != nil {
						t.Errorf("the example of %s: %s: %v", command.CommandPath(), part, err)
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d lines were checked", checked)
	}
}

// parses checks a command line as cobra would, and runs nothing.
func parses(line string) error {
	line = strings.Split(line, " (")[0] // text follows the parenthesis
	words, _ := shellWords(line)
	for i, word := range words {
		if word == "N" { // N stands for a number that the reader chooses
			words[i] = "1"
		}
	}
	root := cli.Root()
	command, rest, err := root.Find(words[1:])
	if err != nil {
		return err
	}
	if command == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("there is no command %q", rest[0])
	}
	if err := command.ParseFlags(rest); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	args := command.Flags().Args()
	if len(args) == 0 && len(rest) == 0 {
		return nil // the text only names the command, as in `sluice work`
	}
	return command.ValidateArgs(args)
}

func TestCommandLinesThatAreNotThereAreSeen(t *testing.T) {
	t.Parallel()
	for line, right := range map[string]bool{
		"sluice jobs --queue mail -o ids":               true,
		"sluice work mail -- sh -c 'cat; echo x'":       true,
		"sluice settings set payments lease=2m":         true,
		"sluice dead requeue --all --queue mail":        true,
		"sluice job list":                               true, // for the parser, list is an argument like any other
		"sluice lobs":                                   false,
		"sluice jobs --colour red":                      false,
		"sluice jobs mail":                              false,
		"sluice dead show mail":                         false,
		"sluice settings set payments":                  false,
		"sluice enqueue mail '{\"a\": 1}' --delay soon": true, // the command checks the delay when it runs
	} {
		if err := parses(line); (err == nil) != right {
			t.Errorf("%s: got the error %v, want it right: %t", line, err, right)
		}
	}
}
