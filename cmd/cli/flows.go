package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/schema"
)

func (a *app) flowsCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:     "flows",
		Short:   "Start and show flows: graphs of jobs",
		Example: "  sluice flows start pipeline.json\n  sluice flows ls\n  sluice flows show 01a1fb72-1dea-7abc-8fc6-99e4817522bb",
	})
	command.AddCommand(a.flowsListCommand(), a.flowShowCommand(), a.flowStartCommand())
	return command
}

func (a *app) flowsListCommand() *cobra.Command {
	var before string
	var limit int
	command := &cobra.Command{
		Use:     "ls",
		Short:   "List flows, newest first",
		Example: "  sluice flows ls\n  sluice flows ls --limit 10 -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			var from sluice.ID
			if before != "" {
				var err error
				if from, err = parseID(before); err != nil {
					return err
				}
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				found, err := flow.List(ctx, store, from, limit)
				if err != nil {
					return err
				}
				if len(found) == 0 && a.output == "table" {
					a.note("no flows; `sluice flows start FILE` starts one")
					return nil
				}
				return printList(a, found, func(f flow.Listed) string { return f.ID.String() }, flowColumns())
			})
		},
	}
	command.Flags().StringVar(&before, "before", "", "continue after this id")
	command.Flags().IntVar(&limit, "limit", 100, "most flows")
	return command
}

func flowColumns() []column[flow.Listed] {
	instant := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return at.Format(time.RFC3339)
	}
	return []column[flow.Listed]{
		{"ID", func(f flow.Listed) string { return f.ID.String() }, false},
		{"FLOW", func(f flow.Listed) string { return f.Name }, false},
		{"STATE", func(f flow.Listed) string { return string(f.State) }, false},
		{"NODES", func(f flow.Listed) string { return draw.Count(f.Nodes) }, true},
		{"STARTED", func(f flow.Listed) string { return instant(f.CreatedAt) }, false},
		{"ENDED", func(f flow.Listed) string { return instant(f.FinishedAt) }, false},
		{"ERROR", func(f flow.Listed) string { return orDash(oneLine(f.Error)) }, false},
	}
}

func (a *app) flowShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "show ID",
		SuggestFor: []string{"get"},
		Short:      "Show a flow as a tree, with the states of its nodes and the critical path",
		Example:    "  sluice flows show 01a1fb72-1dea-7abc-8fc6-99e4817522bb",
		Args:       arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				tree, err := flow.Read(ctx, store, id)
				if err != nil {
					return err
				}
				return a.printNamed(tree, id.String(), func() error { return a.printFlow(tree) })
			})
		},
	}
}

func (a *app) printFlow(t flow.Tree) error {
	var text bytes.Buffer
	line, instant := detailLines(&text, time.RFC3339)
	line("id", t.ID.String())
	line("flow", t.Name)
	line("state", string(t.State))
	line("error", t.Error)
	instant("started", t.CreatedAt)
	instant("deadline", t.Deadline)
	instant("ended", t.FinishedAt)
	line("critical path", fmt.Sprintf("%s  %s", strings.Join(t.CriticalPath, " > "), shortTime(t.CriticalTime)))
	text.WriteString("\n")
	printTree(&text, t)
	_, err := a.stdout.Write(text.Bytes())
	return err
}

// printTree writes each node once, below the last of those that it runs after. A node that runs after several names the others.
func printTree(text *bytes.Buffer, t flow.Tree) {
	below := make(map[string][]int)
	for i, n := range t.Nodes {
		parent := ""
		if len(n.After) > 0 {
			parent = lastOf(t, n.After)
		}
		below[parent] = append(below[parent], i)
	}
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for k, i := range below[parent] {
			branch, next := "├─ ", "│  "
			if k == len(below[parent])-1 {
				branch, next = "└─ ", "   "
			}
			if parent == "" {
				branch, next = "", ""
			}
			fmt.Fprintf(text, "%s%s%s\n", indent, branch, nodeLine(t.Nodes[i], parent))
			write(t.Nodes[i].Name, indent+next)
		}
	}
	write("", "")
}

// lastOf returns the name that comes last in the tree.
func lastOf(t flow.Tree, names []string) string {
	last := ""
	for _, n := range t.Nodes {
		for _, name := range names {
			if n.Name == name {
				last = name
			}
		}
	}
	return last
}

// nodeLine describes a node.
func nodeLine(n flow.NodeState, parent string) string {
	mark := " "
	if n.Critical {
		mark = "*"
	}
	state := n.State
	if state == "" {
		state = "deleted"
	}
	says := fmt.Sprintf("%s %s  %s", mark, n.Name, state)
	if n.Over != "" && n.Elements > 0 {
		says += fmt.Sprintf(" %s of %s", draw.Count(n.Ended), draw.Count(n.Elements))
		if n.FailedElements > 0 {
			says += fmt.Sprintf(", %s failed", draw.Count(n.FailedElements))
		}
	}
	switch {
	case n.Expected:
		says += "  about " + shortTime(n.Took)
	case n.Took > 0:
		says += "  " + shortTime(n.Took)
	}
	says += "  " + n.Job.String()
	var others []string
	for _, name := range n.After {
		if name != parent {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		says += "  also after " + strings.Join(others, ", ")
	}
	if n.Error != "" {
		says += "  " + oneLine(n.Error)
	}
	return says
}

// shortTime writes a time in milliseconds.
func shortTime(d time.Duration) string { return sluice.FormatDuration(d.Round(time.Millisecond)) }

func (a *app) flowStartCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "start FILE",
		Short:   "Start the flow of a JSON file; - for standard input",
		Long:    "Start checks the flow and stores all its jobs, or none. It prints the id of the flow.\n\nThe file is an object with name, nodes, and optionally id and deadline. Each node has name and queue, and optionally payload, after, on_failure, on_failure_of, over, most, tenant, priority, max_attempts, order_key and labels.",
		Example: "  sluice flows start pipeline.json",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			f, err := a.readFlow(args[0])
			if err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				id, err := flow.Start(ctx, store, f)
				if err != nil {
					return err
				}
				started := struct {
					ID sluice.ID `json:"id"`
				}{id}
				return a.printOne(started, func() error {
					_, err := fmt.Fprintln(a.stdout, id)
					return err
				})
			})
		},
	}
}

// readFlow reads the definition of a flow. It refuses fields that it does not know.
func (a *app) readFlow(path string) (f flow.Flow, err error) {
	file := a.stdin
	if path != "-" {
		opened, err := os.Open(path)
		if err != nil {
			return f, usagef("read the flow: %w", err)
		}
		defer func() { _ = opened.Close() }()
		file = opened
	}
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, &sluice.InvalidError{Field: "flow", Rule: fmt.Sprintf("%s is no definition of a flow: %v", path, err)}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return f, &sluice.InvalidError{Field: "flow", Rule: path + " must hold one object"}
	}
	f.Checker = schema.New()
	return f, nil
}
