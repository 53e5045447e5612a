package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

// The bytes of the -shm file that SQLite locks, as its format defines. One byte is for the writer;
// 5 are for read marks, which readers lock.
const (
	writeByte     = 120
	firstReadByte = 123
	lastReadByte  = 127
)

// secondLook is the pause before the second look for readers. Only a reader seen twice keeps its
// read open.
const secondLook = 100 * time.Millisecond

// lockHolder is a process that holds a lock.
type lockHolder struct {
	pid  int
	name string
}

func (h lockHolder) String() string { return fmt.Sprintf("pid %d (%s)", h.pid, h.name) }

// log inspects how much of the log waits for a checkpoint.
func (c *examination) log(ctx context.Context) error {
	state := logOf(c.path)
	severity := c.judge("wal", float64(state.bytes))
	if severity == "" {
		c.Well("wal", "%s", checkup.Bytes(float64(state.bytes)))
		return nil
	}
	what := fmt.Sprintf("the write-ahead log has %s", checkup.Bytes(float64(state.bytes)))
	if state.age >= time.Second {
		what += ", and nothing was brought into the file for " + checkup.Span(state.age.Seconds())
	}
	readers := c.readers(ctx)
	mend := "end the program that keeps a read open"
	if len(readers) > 0 {
		what += "; a read is kept open by " + names(readers)
		mend = "end that read, or the program: kill " + pids(readers)
	}
	c.Find(severity, "wal", what, "the log is not begun anew while somebody reads an old state of it: reads become slow, and the disk fills",
		mend+"; and then: "+c.shell("pragma wal_checkpoint(truncate)"))
	return nil
}

// readers lists the processes that keep a read open, if the system shows them.
func (c *examination) readers(ctx context.Context) []lockHolder {
	first := lockHolders(c.path, false, firstReadByte, lastReadByte)
	if len(first) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(secondLook):
	}
	second := lockHolders(c.path, false, firstReadByte, lastReadByte)
	return slices.DeleteFunc(first, func(h lockHolder) bool { return !slices.Contains(second, h) })
}

func names(holders []lockHolder) string {
	var out []string
	for _, h := range holders {
		out = append(out, h.String())
	}
	return strings.Join(out, ", ")
}

func pids(holders []lockHolder) string {
	var out []string
	for _, h := range holders {
		out = append(out, fmt.Sprint(h.pid))
	}
	return strings.Join(out, " ")
}

// lock takes and releases the write lock, and measures the wait.
func (c *examination) lock(ctx context.Context) error {
	begun := time.Now()
	holders := make(chan []lockHolder, 1)
	watch := time.AfterFunc(c.store.lookTimeout/4, func() { holders <- lockHolders(c.path, true, writeByte, writeByte) })
	err := c.store.writer.submit(ctx, func(*groupTx) error { return nil })
	waited := time.Since(begun).Seconds()
	c.Figure("writer_wait_seconds", waited, "seconds")
	severity := c.judge("lock", waited)
	if err != nil && severity == "" && !busy(err) && !errors.Is(err, context.DeadlineExceeded) {
		watch.Stop()
		return err
	}
	if severity == "" && err == nil {
		watch.Stop()
		c.Well("lock", "the write lock was got in %s", checkup.Span(waited))
		c.busy()
		return nil
	}
	c.locked(err, waited, holdersOf(watch, holders))
	c.busy()
	return nil
}

// holdersOf waits for the lock holders that were seen during the wait.
func holdersOf(watch *time.Timer, holders <-chan []lockHolder) []lockHolder {
	if watch.Stop() {
		return nil
	}
	return <-holders
}

func (c *examination) locked(err error, waited float64, holders []lockHolder) {
	severity, what := health.SeverityWarning, "it took "+checkup.Span(waited)+" to get the write lock"
	if err != nil {
		severity, what = health.SeverityError, "the write lock was not to be had in "+checkup.Span(waited)
	}
	mend := "end the transaction that holds it; keep your own short, or join the writer's with Store.Transact"
	if len(holders) > 0 {
		what += "; it was held by " + names(holders)
		mend = "let that program commit or roll back, or end it: kill " + pids(holders)
	}
	c.Find(severity, "lock", what, "everything that writes waits: enqueues, claims, settlements", mend)
}

// busy inspects the share of its time that this process has waited for other writers.
func (c *examination) busy() {
	share, known := c.store.writer.waits.share(time.Now())
	if !known {
		return
	}
	c.Figure("busy_share", share, "")
	if severity := c.judge("busy", share); severity != "" {
		c.Find(severity, "busy", fmt.Sprintf("this process waited for the write lock of others for %.0f %% of its time", 100*share),
			"its writes are slow, and so are its workers", "let one process do the work of several (more --slots), and keep other programs' transactions short")
	}
}
