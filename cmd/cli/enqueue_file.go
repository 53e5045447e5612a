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
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
	"github.com/sluice-queue/sluice/pressure"
)

// enqueued is the result of a file of jobs.
type enqueued struct {
	Run        sluice.ID `json:"run"`
	Lines      int       `json:"lines"`
	Stored     int       `json:"stored"`
	Before     int       `json:"stored_before"`
	Duplicates int       `json:"duplicates"`
	Refused    int       `json:"refused"`

	doubtful int // last line of a batch without an answer; 0: none
}

// String formats the result for people.
func (e enqueued) String() string {
	text := fmt.Sprintf("%s stored, ", draw.Count(e.Stored))
	if e.Before > 0 {
		text += fmt.Sprintf("%s stored before, ", draw.Count(e.Before))
	}
	return text + fmt.Sprintf("%s, %s refused", draw.Plural(e.Duplicates, "duplicate"), draw.Count(e.Refused))
}

// goOn says how to continue an interrupted run.
func (e enqueued) goOn() string {
	return fmt.Sprintf("go on with --resume %s --skip %d", e.Run, e.Lines)
}

func (a *app) enqueueFile(ctx context.Context, args []string, f enqueueFlags) (err error) {
	queue := ""
	switch len(args) {
	case 0:
	case 1:
		queue = args[0]
	default:
		return usagef("with --file the payloads come from the file")
	}
	lines := lineEnqueuer{app: a, in: a.stdin, queue: queue, skip: f.skip, batchSize: f.lines, run: newFileRun(), checked: make(map[string]bool)}
	if f.batch != "" {
		id, err := f.batchID()
		if err != nil {
			return err
		}
		lines.prepare = func(job *sluice.NewJob) error {
			job.Batch = cmp.Or(job.Batch, id)
			return nil
		}
	}
	if f.resume != "" {
		if lines.run, err = parseFileRun(f.resume); err != nil {
			return err
		}
		lines.resumed = true
	}
	if f.file != "-" {
		file, err := lines.open(ctx, f.file)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
	}
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.closeSoon(ctx, store)
	lines.client = a.client(store)
	if !lines.resumed {
		a.note("run %s: if it is cut off, go on with --resume %s", sluice.ID(lines.run), sluice.ID(lines.run))
	}
	out, err := lines.store(ctx)
	switch {
	case errors.Is(err, errForgotten):
		return err
	case err != nil:
		return a.cutOff(ctx, out, err)
	}
	if f.skip > out.Lines {
		return skippedAll(f.skip, out.Lines)
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

// skippedAll refuses to skip more lines than there are. To skip all of them is right: a run may be cut off after its last line.
func skippedAll(skip, lines int) error {
	return codedError{
		usagef("nothing was enqueued: --skip %d is more than the number of lines, %d", skip, lines), exitUsage,
		"skip as many lines as the interrupted run said, or leave --skip out to enqueue all",
	}
}

// cutOff prints how far a run came, even with --quiet: starting over would store jobs twice.
func (a *app) cutOff(ctx context.Context, out enqueued, err error) error {
	doubt := ""
	if out.doubtful > 0 {
		doubt = fmt.Sprintf(", and lines %d to %d may be", out.Lines+1, out.doubtful)
	}
	fmt.Fprintf(a.stderr, "%s%s; %s\n", out, doubt, out.goOn())
	if ctx.Err() != nil {
		return codedError{ctx.Err(), exitInterrupted, out.goOn() + "; from the beginning, jobs would be stored twice"}
	}
	return err
}

// closeSoon closes a store. After an interrupt it waits only closeGrace: closing asks an unreachable store once more to
// take the statistics.
func (a *app) closeSoon(ctx context.Context, store sluice.Store) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		a.close(store)
	}()
	select {
	case <-closed:
		return
	case <-ctx.Done():
	}
	select {
	case <-closed:
	case <-time.After(closeGrace):
	}
}

// After an interrupt, a batch under way may take batchGrace, and closing the store closeGrace.
const (
	batchGrace = 500 * time.Millisecond
	closeGrace = 300 * time.Millisecond
)

// maxLine bounds a line: the largest payload of a queue, and its options.
const maxLine = 65 << 20

// maxBatchBytes ends a batch before it has all its lines.
const maxBatchBytes = 16 << 20

// lineEnqueuer stores a file's lines in batches.
type lineEnqueuer struct {
	*app
	client    *sluice.Client
	in        io.Reader
	size      int64 // of the file; 0: unknown
	queue     string
	run       fileRun
	resumed   bool // the run began before
	skip      int
	batchSize int
	prepare   func(*sluice.NewJob) error // changes or refuses a job; nil: takes all

	checked map[string]bool // queues that have deleted none of the resumed run's jobs
	batch   []sluice.NewJob
	bytes   int   // of its payloads
	numbers []int // the batch's lines
	refused []refusedLine
	out     enqueued
}

type refusedLine struct {
	number int
	err    error
}

// open makes a file the input, until the context ends.
func (l *lineEnqueuer) open(ctx context.Context, path string) (io.Closer, error) {
	file, err := openUntil(ctx, path)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, codedError{usagef("%w", err), exitUsage, "name a file that you may read with --file"}
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = usagef("%s is a folder", path)
	}
	if err != nil {
		_ = file.Close() // only read
		return nil, err
	}
	l.in, l.size = interruptible{ctx, file}, info.Size()
	return file, nil
}

// openUntil opens a file to read it, until the context ends: a named pipe waits for somebody who writes.
func openUntil(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(path)
		done <- opened{file, err}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// notAll is the largest share of a file that a run shows while it stores lines: it reads further than it has stored, and the file
// may grow.
const notAll = 0.99

// store stores the lines. Lines of the result counts lines dealt with for good.
func (l *lineEnqueuer) store(ctx context.Context) (enqueued, error) {
	l.out.Run = sluice.ID(l.run)
	counting := &countingReader{reader: l.in}
	lines := bufio.NewScanner(counting)
	lines.Buffer(make([]byte, 0, 1<<20), maxLine)
	bar := l.newProgress("Enqueuing", 0)
	defer bar.leave()
	number := 0
	for lines.Scan() {
		if number++; number > maxLines {
			return l.out, usagef("more than %d lines: split the file", maxLines)
		}
		if number <= l.skip {
			l.out.Lines = number
			continue
		}
		l.take(number, bytes.TrimSpace(lines.Bytes()))
		if len(l.batch)+len(l.refused) < l.batchSize && l.bytes < maxBatchBytes {
			continue
		}
		if err := l.flush(ctx, number, bar); err != nil {
			return l.out, err
		}
		share := ""
		if l.size > 0 {
			share = draw.Percent(0, min(float64(counting.read)/float64(l.size), notAll)) + " % of the file"
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

// take adds a line to the batch, or to the refused ones.
func (l *lineEnqueuer) take(number int, text []byte) {
	if len(text) == 0 {
		return
	}
	job, err := jobline.Parse(text, l.queue)
	if err == nil && l.prepare != nil {
		err = l.prepare(&job)
	}
	if err != nil {
		l.refused = append(l.refused, refusedLine{number, err})
		return
	}
	if job.ID.IsZero() {
		job.ID = l.run.id(number)
	}
	l.batch, l.numbers = append(l.batch, job), append(l.numbers, number)
	l.bytes += len(job.Payload)
}

// flush stores the batch and reports the refused lines in file order.
func (l *lineEnqueuer) flush(ctx context.Context, upTo int, bar *progress) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.put(ctx, upTo); err != nil {
		return err
	}
	slices.SortFunc(l.refused, func(a, b refusedLine) int { return cmp.Compare(a.number, b.number) })
	for _, r := range l.refused {
		bar.leave()
		fmt.Fprintf(l.stderr, "line %d: %s\n", r.number, l.why(r.err))
	}
	l.out.Refused += len(l.refused)
	l.out.Lines = max(l.out.Lines, upTo)
	l.batch, l.numbers, l.refused, l.bytes = l.batch[:0], l.numbers[:0], l.refused[:0], 0
	return nil
}

// put stores the batch. After an interrupt it waits batchGrace for the answer.
func (l *lineEnqueuer) put(ctx context.Context, upTo int) error {
	soon, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the store has its own deadline
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(batchGrace, cancel) })()
	if l.resumed {
		if err := l.verify(soon); err != nil {
			return err
		}
	}
	receipts, err := l.client.EnqueueMany(soon, l.batch)
	var refused *sluice.BatchError
	if errors.Is(err, pressure.ErrFull) { // the batch was not stored; a resumed run sends it again
		return err
	}
	if err != nil && !errors.As(err, &refused) {
		l.out.doubtful = upTo
		return err
	}
	for i, receipt := range receipts {
		switch {
		case refused != nil && refused.Failed[i] != nil:
			l.refused = append(l.refused, refusedLine{l.numbers[i], refused.Failed[i]})
		case receipt.Duplicate && l.resumed && receipt.ID == l.run.id(l.numbers[i]):
			l.out.Before++
		case receipt.Duplicate:
			l.out.Duplicates++
		default:
			l.out.Stored++
		}
	}
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
