// Command conversations learns from conversations without ever keeping their caller waiting: a hook takes each message,
// sanitized, and three stages of jobs go on from there, all in one SQLite file. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/sluice-queue/sluice/apps/conversations/demo"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/logs"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
)

const usage = `usage:
  conversations prepare   make the file, its tables and its queues
  conversations hook      take one event, as JSON on standard input; cmd/hook is a smaller program that does only this
  conversations work      do the jobs: validate, extract, upload
  conversations search    find learnings by words
  conversations bench     measure the hook against its budgets
  conversations demo      200 conversations with secrets in them, and a worker that is killed; checks that all holds
Each has -h.`

// exitCheck is the exit code of a check that does not hold.
const exitCheck = 7

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) int {
	commands := map[string]func(ctx context.Context, args []string, out io.Writer) error{
		"prepare": prepare, "work": work, "search": search, "bench": bench, "demo": runDemo,
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, usage)
		return 1
	}
	if args[0] == "hook" {
		return hook.Main(ctx, args[1:], in, out)
	}
	command := commands[args[0]]
	if command == nil {
		fmt.Fprintf(os.Stderr, "there is no command %q\n%s\n", args[0], usage)
		return 1
	}
	switch err := command(ctx, args[1:], out); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, demo.ErrCheck):
		fmt.Fprintln(os.Stderr, "conversations:", err)
		return exitCheck
	default:
		fmt.Fprintln(os.Stderr, "conversations:", err)
		return 1
	}
}

func prepare(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("prepare", flag.ContinueOnError)
	path := hook.FileFlag(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*path), 0o700); err != nil {
		return err
	}
	db, err := records.Prepare(ctx, *path, schema.New())
	if err != nil {
		return err
	}
	err = stages.Ensure(ctx, db.Client, stages.Presets())
	if err == nil {
		err = hook.SpoolOf(*path).TakeIn(ctx, db, logs.New(os.Stderr), nil)
	}
	if err == nil {
		fmt.Fprintln(out, "prepared", *path)
	}
	return errors.Join(err, db.Close())
}

func search(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	path := hook.FileFlag(flags)
	limit := flags.Int("limit", 10, "how many at the most")
	if err := flags.Parse(args); err != nil {
		return err
	}
	db, err := records.Open(ctx, *path, schema.New())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	words := ""
	for _, word := range flags.Args() {
		words += word + " "
	}
	found, err := db.Search(ctx, words, min(max(*limit, 1), 1000))
	for _, l := range found {
		fmt.Fprintf(out, "%-13s %.2f  %s\n               %s %s\n", l.Category, l.Confidence, l.Content, l.Status, l.CID)
	}
	return err
}

func bench(ctx context.Context, args []string, out io.Writer) error {
	o := demo.BenchOptions{Out: out}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.Events, "events", 200, "how many processes of the hook")
	flags.IntVar(&o.Bytes, "bytes", 12<<10, "how long each event is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return demo.Bench(ctx, o)
}

func runDemo(ctx context.Context, args []string, out io.Writer) error {
	o := demo.Options{Out: out, Budgets: true}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&o.Conversations, "conversations", 200, "how many conversations, of three messages each")
	flags.StringVar(&o.Folder, "folder", "", "where all of it goes, and stays (default: a new folder, which is removed if all holds)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return demo.Run(ctx, o)
}

// logFile opens the log of a command.
func logFile(path string) (*slog.Logger, io.Closer, error) {
	if path == "" {
		return logs.New(os.Stderr), io.NopCloser(nil), nil
	}
	return logs.Open(path)
}
