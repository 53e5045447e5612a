package matcher

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
)

// Command runs the matcher from the command line, until ctx ends.
func Command(ctx context.Context, args []string, out io.Writer) (err error) {
	options := Options{Logger: slog.New(slog.NewJSONHandler(out, nil))}
	flags := flag.NewFlagSet("match", flag.ContinueOnError)
	db := flags.String("db", os.Getenv("INGREDIENTS_DB"), "URL of the database (or INGREDIENTS_DB)")
	queues := flags.String("queues", strings.Join(kitchen.Sources(), ","), "sources to claim from")
	flags.IntVar(&options.Slots, "slots", 10, "how many to resolve at a time; the lease is that of the queue's settings")
	flags.DurationVar(&options.Work, "work", 0, "time that each job takes besides, for the demo")
	flags.StringVar(&options.Monitor, "monitor", "", "loopback address of /metrics, /healthz and /readyz (default: they are not there)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	options.Queues = strings.Split(*queues, ",")
	k, err := kitchen.Open(ctx, *db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return Run(ctx, k, options)
}
