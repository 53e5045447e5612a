package cli

import (
	"bufio"
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
)

// jobLine is a job as a line of a file says it. Instants are RFC 3339, durations as Go writes them.
type jobLine struct {
	Queue       string             `json:"queue"`
	Payload     json.RawMessage    `json:"payload"`
	ID          sluice.ID          `json:"id"`
	Tenant      string             `json:"tenant"`
	Key         string             `json:"key"`
	KeyScope    sluice.KeyScope    `json:"key_scope"`
	KeyWindow   string             `json:"key_window"`
	OnDuplicate sluice.OnDuplicate `json:"on_duplicate"`
	DueAt       time.Time          `json:"due_at"`
	Delay       string             `json:"delay"`
	Priority    int                `json:"priority"`
	ExpiresAt   time.Time          `json:"expires_at"`
	Labels      map[string]string  `json:"labels"`
	MaxAttempts int                `json:"max_attempts"`
}

// parseJobLine reads a line of a file. A name that is not known is refused: it is most likely a
// misspelt option, and the job would not do what was meant.
func parseJobLine(line []byte, queue string) (sluice.NewJob, error) {
	var in jobLine
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return sluice.NewJob{}, fmt.Errorf("it is not a job: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return sluice.NewJob{}, errors.New("it is not a job: there is more than one value on the line")
	}
	job := sluice.NewJob{Queue: in.Queue, Payload: in.Payload, EnqueueOptions: sluice.EnqueueOptions{
		ID: in.ID, Tenant: in.Tenant, Key: in.Key, KeyScope: in.KeyScope, OnDuplicate: in.OnDuplicate, DueAt: in.DueAt,
		Priority: in.Priority, ExpiresAt: in.ExpiresAt, Labels: in.Labels, MaxAttempts: in.MaxAttempts,
	}}
	if job.Queue == "" {
		job.Queue = queue
	}
	for _, d := range []struct {
		name, text string
		into       *time.Duration
	}{{"key_window", in.KeyWindow, &job.KeyWindow}, {"delay", in.Delay, &job.Delay}} {
		if d.text == "" {
			continue
		}
		var err error
		if *d.into, err = sluice.ParseDuration(d.text); err != nil {
			return sluice.NewJob{}, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return job, nil
}

// enqueueFlags are the options of one job.
type enqueueFlags struct {
	options            sluice.EnqueueOptions
	id, dueAt, expires string
	delay, window      string
	scope, onDuplicate string
	labels             []string
	file               string
	skip, batch        int
}

func (a *app) enqueueCommand() *cobra.Command {
	var f enqueueFlags
	command := &cobra.Command{
		Use:   "enqueue QUEUE [PAYLOAD]",
		Short: "Put a job in, or a file of jobs",
		Long: `Puts one job in. The payload is JSON: the argument itself, @FILE, or - for standard input.

With --file, puts every line of a file in: each line is a JSON object with a payload and any of the
options (queue, tenant, key, due_at, delay, priority, labels …). Lines that are refused are reported
with their number and do not keep the others from being stored.`,
		Example: `  sluice enqueue mail '{"to":"ada"}' --tenant acme --delay 10m
  sluice enqueue reports @report.json --key report-7 --on-duplicate replace
  sluice enqueue payments --file wave.jsonl`,
		Args: cobra.RangeArgs(0, 2),
		RunE: func(command *cobra.Command, args []string) error {
			if f.file != "" {
				return a.enqueueFile(command.Context(), args, f)
			}
			return a.enqueueOne(command.Context(), args, f)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.options.Tenant, "tenant", "", "whom the job belongs to")
	flags.StringVar(&f.options.Key, "key", "", "idempotency key, unique within the queue")
	flags.StringVar(&f.scope, "key-scope", "", "how long the key keeps others out: unfinished (default), window or forever")
	flags.StringVar(&f.window, "key-window", "", "the length of the window, such as 1h or 7d")
	flags.StringVar(&f.onDuplicate, "on-duplicate", "", "what becomes of a duplicate: keep (default), replace or coalesce")
	flags.StringVar(&f.dueAt, "due-at", "", "when it may start, such as 2026-12-01T16:00:00Z (default: now)")
	flags.StringVar(&f.delay, "delay", "", "when it may start, counted from now")
	flags.IntVar(&f.options.Priority, "priority", 0, "1 (first) to 10 (last); default 5")
	flags.StringVar(&f.expires, "expires-at", "", "when it is cancelled if it still waits")
	flags.StringArrayVar(&f.labels, "label", nil, "name=value to find it by; may be repeated")
	flags.IntVar(&f.options.MaxAttempts, "max-attempts", 0, "the failed attempt that buries it (default: the queue's setting)")
	flags.StringVar(&f.id, "id", "", "the job's id (default: a new one); the same id stores a job once")
	flags.StringVar(&f.file, "file", "", "a file of jobs, one JSON object per line; - for standard input")
	flags.IntVar(&f.skip, "skip", 0, "with --file: lines to leave out at the beginning, to go on where it was interrupted")
	flags.IntVar(&f.batch, "batch", 1000, "with --file: lines stored in one transaction")
	return command
}

// parse makes the options of what the flags say.
func (f enqueueFlags) parse() (sluice.EnqueueOptions, error) {
	out := f.options
	out.KeyScope, out.OnDuplicate = sluice.KeyScope(f.scope), sluice.OnDuplicate(f.onDuplicate)
	var err error
	if f.id != "" {
		if out.ID, err = sluice.ParseID(f.id); err != nil {
			return out, err
		}
	}
	for _, at := range []struct {
		flag, text string
		into       *time.Time
	}{{"--due-at", f.dueAt, &out.DueAt}, {"--expires-at", f.expires, &out.ExpiresAt}} {
		if *at.into, err = parseTime(at.flag, at.text); err != nil {
			return out, err
		}
	}
	for _, d := range []struct {
		flag, text string
		into       *time.Duration
	}{{"--delay", f.delay, &out.Delay}, {"--key-window", f.window, &out.KeyWindow}} {
		if d.text == "" {
			continue
		}
		if *d.into, err = sluice.ParseDuration(d.text); err != nil {
			return out, usagef("%s: %w", d.flag, err)
		}
	}
	out.Labels, err = parseLabels(f.labels)
	return out, err
}

// parseTime reads an instant with its zone; an empty text is the zero time.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, usagef("%s %q is not an instant such as 2026-12-01T16:00:00Z or 2026-12-01T16:00:00-07:00", flag, text)
	}
	return at, nil
}

func parseLabels(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, usagef("--label %q is not name=value", pair)
		}
		labels[name] = value
	}
	return labels, nil
}

func (a *app) enqueueOne(ctx context.Context, args []string, f enqueueFlags) error {
	if len(args) < 2 {
		return usagef("a queue and a payload are needed, or --file")
	}
	options, err := f.parse()
	if err != nil {
		return err
	}
	payload, err := a.payload(args[1])
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
		receipt, err := client.Enqueue(ctx, sluice.NewJob{Queue: args[0], Payload: payload, EnqueueOptions: options})
		if err != nil {
			return err
		}
		return a.printOne(receipt, func() error {
			if receipt.Duplicate {
				a.note("duplicate: the job that is there has this id")
			}
			if !receipt.Replaced.IsZero() {
				a.note("replaced %s", receipt.Replaced)
			}
			_, err := fmt.Fprintln(a.stdout, receipt.ID)
			return err
		})
	})
}

// payload reads a payload from the argument, a file or standard input.
func (a *app) payload(argument string) ([]byte, error) {
	switch {
	case argument == "-":
		return io.ReadAll(a.stdin)
	case strings.HasPrefix(argument, "@"):
		text, err := os.ReadFile(argument[1:])
		if err != nil {
			return nil, usagef("read the payload: %w", err)
		}
		return text, nil
	}
	return []byte(argument), nil
}

// enqueued tells what became of a file of jobs.
type enqueued struct {
	Lines      int `json:"lines"`
	Stored     int `json:"stored"`
	Duplicates int `json:"duplicates"`
	Refused    int `json:"refused"`
}

func (a *app) enqueueFile(ctx context.Context, args []string, f enqueueFlags) error {
	queue := ""
	switch len(args) {
	case 0:
	case 1:
		queue = args[0]
	default:
		return usagef("with --file the payloads come from the file")
	}
	if f.batch < 1 || f.batch > 10_000 {
		return usagef("--batch %d is not from 1 to 10000", f.batch)
	}
	in := a.stdin
	size := int64(0)
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return usagef("%w", err)
		}
		defer func() { _ = file.Close() }()
		if info, err := file.Stat(); err == nil {
			size = info.Size()
		}
		in = file
	}
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	out, err := a.enqueueLines(ctx, a.client(store), in, size, queue, f)
	if err != nil {
		a.note("%s lines were taken; go on with --skip %d", count(out.Lines), out.Lines)
		return err
	}
	if err := a.printOne(out, func() error {
		_, err := fmt.Fprintf(a.stdout, "%s stored, %s duplicates, %s refused\n", count(out.Stored), count(out.Duplicates), count(out.Refused))
		return err
	}); err != nil {
		return err
	}
	if out.Refused > 0 {
		return silentExit(exitPartly)
	}
	return nil
}

// maxLine bounds a line of a file: the largest payload a queue may take, and its options.
const maxLine = 65 << 20

// enqueueLines stores the lines in batches. Lines counts those that were dealt with for good.
func (a *app) enqueueLines(ctx context.Context, client *sluice.Client, in io.Reader, size int64, queue string, f enqueueFlags) (enqueued, error) {
	var out enqueued
	counting := &countingReader{reader: in}
	lines := bufio.NewScanner(counting)
	lines.Buffer(make([]byte, 0, 1<<20), maxLine)
	bar := a.newProgress("Enqueuing", 0)
	var batch []sluice.NewJob
	var numbers []int
	flush := func(upTo int) error {
		if err := a.enqueueBatch(ctx, client, batch, numbers, &out); err != nil {
			return err
		}
		out.Lines = upTo
		batch, numbers = batch[:0], numbers[:0]
		share := ""
		if size > 0 {
			share = fmt.Sprintf("%d %% of the file", counting.read*100/size)
		}
		bar.set(out.Stored, share)
		return nil
	}
	number := 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if number <= f.skip || len(text) == 0 {
			continue
		}
		job, err := parseJobLine(text, queue)
		if err != nil {
			a.refuse(number, err, &out)
			continue
		}
		if batch, numbers = append(batch, job), append(numbers, number); len(batch) == f.batch {
			if err := flush(number); err != nil {
				return out, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return out, fmt.Errorf("line %d: %w", number+1, err)
	}
	if err := flush(number); err != nil {
		return out, err
	}
	bar.end(out.Stored, "")
	return out, nil
}

func (a *app) enqueueBatch(ctx context.Context, client *sluice.Client, batch []sluice.NewJob, numbers []int, out *enqueued) error {
	if len(batch) == 0 {
		return nil
	}
	for i := range batch {
		if batch[i].ID.IsZero() {
			batch[i].ID = sluice.NewID() // chosen here, so that trying again finds it
		}
	}
	receipts, err := client.EnqueueMany(ctx, batch)
	var refused *sluice.BatchError
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	for i, receipt := range receipts {
		switch {
		case refused != nil && refused.Failed[i] != nil:
			a.refuse(numbers[i], refused.Failed[i], out)
		case receipt.Duplicate:
			out.Duplicates++
		default:
			out.Stored++
		}
	}
	return nil
}

// refuse reports a line that was not stored.
func (a *app) refuse(number int, err error, out *enqueued) {
	out.Refused++
	fmt.Fprintf(a.stderr, "line %d: %v\n", number, err)
}

type countingReader struct {
	reader io.Reader
	read   int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.read += int64(n)
	return n, err
}
