// Package nightly is the scheduled run of the source design: a bounded number of jobs, and, if that is asked for, those
// that failed before. The steady matchers may run beside it.
package nightly

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/apps/ingredients/languages"
	"github.com/sluice-queue/sluice/presence"
)

//go:embed sql/retry.sql
var retrySQL string

//go:embed sql/reopen.sql
var reopenSQL string

//go:embed sql/ahead.sql
var aheadSQL string

// DefaultReason is what the audit tells of a retry (E-12).
const DefaultReason = "Retry requested by nightly workflow"

// Options adjust a run.
type Options struct {
	// Queues are the sources to claim from.
	Queues []string
	// Limit is how many jobs are claimed, and how many dead ones of each queue are tried again, at the most.
	Limit int
	// DryRun only says what would be done.
	DryRun bool
	// RetryDead gives dead jobs a new life first, for Reason: a deliberate act (E-13).
	RetryDead bool
	Reason    string
	// Language is that of the matcher that does the work, python or node.
	Language string
	// Flags are further flags of that matcher.
	Flags []string
	// Out is told what is done.
	Out io.Writer
}

// Run runs once.
func Run(ctx context.Context, url string, k *kitchen.Kitchen, options Options) error {
	if options.Limit < 1 {
		return fmt.Errorf("limit: %d is not at least 1", options.Limit)
	}
	if options.RetryDead {
		for _, queue := range options.Queues {
			if err := retry(ctx, k, queue, options); err != nil {
				return err
			}
		}
	}
	if options.DryRun {
		return ahead(ctx, k, options)
	}
	return work(ctx, url, options)
}

// retry gives the dead jobs of a queue a new life. They hold no lease, so that the next claim takes them (E-14).
func retry(ctx context.Context, k *kitchen.Kitchen, queue string, options Options) error {
	return pgx.BeginFunc(ctx, k.Pool(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, retrySQL, queue, options.Reason, options.Limit, options.DryRun)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("retry what is dead in %s: %w", queue, err)
		}
		if options.DryRun {
			_, err := fmt.Fprintf(options.Out, "%s: %d dead would be tried again\n", queue, len(ids))
			return err
		}
		if _, err := tx.Exec(ctx, reopenSQL, ids, options.Reason, "nightly "+presence.NewID()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(options.Out, "%s: %d dead are tried again: %s\n", queue, len(ids), options.Reason)
		return err
	})
}

// ahead says what the run would find.
func ahead(ctx context.Context, k *kitchen.Kitchen, options Options) error {
	rows, err := k.Pool().Query(ctx, aheadSQL, options.Queues, options.Limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var queue, verdict string
		var n int
		if err := rows.Scan(&queue, &verdict, &n); err != nil {
			return err
		}
		fmt.Fprintf(options.Out, "%s: %d would be %s\n", queue, n, verdict)
	}
	return rows.Err()
}

// work has a matcher do so many jobs, or all that are due.
func work(ctx context.Context, url string, options Options) error {
	folder, err := os.MkdirTemp("", "sluice-nightly-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program, err := languages.Find(ctx, options.Language, folder)
	if err != nil {
		return err
	}
	args := append(program.Command[1:], "--queues", strings.Join(options.Queues, ","), "--limit", strconv.Itoa(options.Limit), "--until-empty")
	args = append(args, options.Flags...)
	matcher := exec.CommandContext(ctx, program.Command[0], args...)
	matcher.Cancel = func() error { return matcher.Process.Signal(os.Interrupt) } // it hands back what it has not begun
	matcher.Env = append(append(os.Environ(), program.Env...), "INGREDIENTS_DB="+url)
	matcher.Stdout, matcher.Stderr = os.Stderr, os.Stderr
	if err := matcher.Run(); err != nil {
		return fmt.Errorf("the matcher in %s: %w", options.Language, err)
	}
	return nil
}

// Command runs it from the command line.
func Command(ctx context.Context, args []string, out io.Writer) (err error) {
	retryDefault := false
	if text := os.Getenv("QUEUE_RETRY_FAILED"); text != "" {
		if retryDefault, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("QUEUE_RETRY_FAILED=%q is neither true nor false", text)
		}
	}
	o := Options{Out: out}
	flags := flag.NewFlagSet("nightly", flag.ContinueOnError)
	db := flags.String("db", os.Getenv("INGREDIENTS_DB"), "URL of the database (or INGREDIENTS_DB)")
	queues := flags.String("queues", strings.Join(kitchen.Sources(), ","), "sources to claim from")
	flags.IntVar(&o.Limit, "limit", 500, "how many jobs at the most")
	flags.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	flags.BoolVar(&o.RetryDead, "retry-dead", retryDefault, "first give dead jobs a new life (or QUEUE_RETRY_FAILED=true)")
	flags.StringVar(&o.Reason, "reason", DefaultReason, "why, for the audit and the trail")
	flags.StringVar(&o.Language, "language", "python", "that of the matcher that does the work: python, node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Queues = strings.Split(*queues, ",")
	k, err := kitchen.Open(ctx, *db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return Run(ctx, *db, k, o)
}
