package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/sluice-queue/sluice"
)

// enqueued tells what became of a file of jobs.
type enqueued struct {
	Lines      int `json:"lines"`
	Stored     int `json:"stored"`
	Duplicates int `json:"duplicates"`
	Refused    int `json:"refused"`
}

// String is the same for people.
func (e enqueued) String() string {
	return fmt.Sprintf("%s stored, %s duplicates, %s refused", count(e.Stored), count(e.Duplicates), count(e.Refused))
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
	lines := lineEnqueuer{app: a, in: a.stdin, queue: queue, skip: f.skip, batchSize: f.batch}
	if f.file != "-" {
		file, err := lines.open(f.file)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
	}
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	lines.client = a.client(store)
	out, err := lines.run(ctx)
	if err != nil {
		a.note("%s; go on with --skip %d", out, out.Lines)
		return err
	}
	if err := a.printOne(out, func() error {
		_, err := fmt.Fprintln(a.stdout, out)
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

// lineEnqueuer stores the lines of a file in batches.
type lineEnqueuer struct {
	*app
	client    *sluice.Client
	in        io.Reader
	size      int64 // of the file; 0: not known
	queue     string
	skip      int
	batchSize int
	prepare   func(*sluice.NewJob) error // changes or refuses a job; nil: takes all

	batch   []sluice.NewJob
	numbers []int // the lines of the batch
	refused []refusedLine
	out     enqueued
}

type refusedLine struct {
	number int
	err    error
}

// open makes a file what is read.
func (l *lineEnqueuer) open(path string) (io.Closer, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usagef("%w", err)
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = usagef("%s is a folder", path)
	}
	if err != nil {
		_ = file.Close() // it was only read
		return nil, err
	}
	l.in, l.size = file, info.Size()
	return file, nil
}

// run stores the lines. Lines of what it returns counts those that were dealt with for good. An
// interrupt is seen between batches, so that the count is right.
func (l *lineEnqueuer) run(ctx context.Context) (enqueued, error) {
	counting := &countingReader{reader: l.in}
	lines := bufio.NewScanner(counting)
	lines.Buffer(make([]byte, 0, 1<<20), maxLine)
	bar := l.newProgress("Enqueuing", 0)
	defer bar.leave()
	number := 0
	for lines.Scan() {
		number++
		if number <= l.skip {
			l.out.Lines = number
			continue
		}
		l.take(number, bytes.TrimSpace(lines.Bytes()))
		if len(l.batch)+len(l.refused) < l.batchSize {
			continue
		}
		if err := l.flush(ctx, number, bar); err != nil {
			return l.out, err
		}
		share := ""
		if l.size > 0 {
			share = fmt.Sprintf("%d %% of the file", counting.read*100/l.size)
		}
		bar.set(l.out.Stored, share)
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = usagef("line %d is longer than %d bytes", number+1, maxLine)
	}
	if err = errors.Join(l.flush(ctx, number, bar), err); err != nil {
		return l.out, err
	}
	bar.end(l.out.Stored, "")
	return l.out, nil
}

// take reads a line into the batch, or among the refused ones.
func (l *lineEnqueuer) take(number int, text []byte) {
	if len(text) == 0 {
		return
	}
	job, err := parseJobLine(text, l.queue)
	if err == nil && l.prepare != nil {
		err = l.prepare(&job)
	}
	if err != nil {
		l.refused = append(l.refused, refusedLine{number, err})
		return
	}
	if job.ID.IsZero() {
		job.ID = sluice.NewID() // chosen here, so that trying again finds it
	}
	l.batch, l.numbers = append(l.batch, job), append(l.numbers, number)
}

// flush stores the batch and reports the refused lines, in the order of the file.
func (l *lineEnqueuer) flush(ctx context.Context, upTo int, bar *progress) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var refused *sluice.BatchError
	receipts, err := l.client.EnqueueMany(context.WithoutCancel(ctx), l.batch) // the store has its own deadline
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	for i, receipt := range receipts {
		switch {
		case refused != nil && refused.Failed[i] != nil:
			l.refused = append(l.refused, refusedLine{l.numbers[i], refused.Failed[i]})
		case receipt.Duplicate:
			l.out.Duplicates++
		default:
			l.out.Stored++
		}
	}
	slices.SortFunc(l.refused, func(a, b refusedLine) int { return cmp.Compare(a.number, b.number) })
	for _, r := range l.refused {
		bar.leave()
		fmt.Fprintf(l.stderr, "line %d: %s\n", r.number, l.why(r.err))
	}
	l.out.Refused += len(l.refused)
	l.out.Lines = max(l.out.Lines, upTo)
	l.batch, l.numbers, l.refused = l.batch[:0], l.numbers[:0], l.refused[:0]
	return nil
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
