// Command ingredients resolves what shops and recipes call ingredients, with matchers in three languages on one database.
//
//	ingredients prepare   makes the tables, functions and queues
//	ingredients match     the matcher in Go; those in Python and Node are in the folder languages
//	ingredients nightly   a bounded run, which may try again what failed
//	ingredients demo      all three languages at work, with one process of each killed, and a proof by SQL
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice/apps/ingredients/demo"
	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/apps/ingredients/matcher"
	"github.com/sluice-queue/sluice/apps/ingredients/nightly"
)

const usage = "usage: ingredients prepare|match|nightly|demo [flags]; ingredients demo -h lists them"

// exitBroken is the exit code of a demo whose proof fails, as that of `sluice demo`.
const exitBroken = 7

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, demo.ErrBroken):
		fmt.Fprintln(os.Stderr, "ingredients:", err)
		os.Exit(exitBroken)
	default:
		fmt.Fprintln(os.Stderr, "ingredients:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "prepare":
		return prepare(ctx, args[1:])
	case "match":
		return matcher.Command(ctx, args[1:], os.Stderr)
	case "nightly":
		return nightly.Command(ctx, args[1:], os.Stdout)
	case "demo":
		return runDemo(ctx, args[1:])
	}
	return fmt.Errorf("unknown command %q; %s", args[0], usage)
}

func prepare(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("prepare", flag.ContinueOnError)
	db := flags.String("db", os.Getenv("INGREDIENTS_DB"), "URL of the database (or INGREDIENTS_DB)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return kitchen.Prepare(ctx, *db, kitchen.Preset(), kitchen.DefaultPantry())
}

func runDemo(ctx context.Context, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := demo.Options{Out: os.Stdout, Matcher: []string{self, "match"}}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&o.Mentions, "mentions", 800, "how many mentions there are")
	flags.DurationVar(&o.Duration, "for", time.Minute, "for how long they come in, about")
	flags.DurationVar(&o.Lease, "lease", 5*time.Second, "how long a claim holds without being renewed; short, so that the demo sees one run out")
	flags.DurationVar(&o.Work, "work", 50*time.Millisecond, "time that each job takes besides")
	flags.StringVar(&o.DB, "db", "", "URL of an empty PostgreSQL database (default: a server of the demo's own)")
	flags.StringVar(&o.Folder, "folder", "", "where the log goes (default: nowhere in the end)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	_, err = demo.Run(ctx, o)
	return err
}
