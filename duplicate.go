package sluice

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// duplicateLines is the most duplicates of a queue that a client logs within a duplicateWindow. The client
	// counts the others.
	duplicateLines  = 10
	duplicateWindow = 10 * time.Second
)

// duplicateLog logs enqueues that stored nothing because another job has the key or the ID. The limit keeps a
// producer that repeats everything from filling a disk.
type duplicateLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	queues map[string]*duplicateCount
}

// duplicateCount counts the lines of a queue in one window.
type duplicateCount struct{ written, leftOut int }

// newDuplicateLog makes a duplicateLog. A nil logger means slog.Default().
func newDuplicateLog(logger *slog.Logger) *duplicateLog {
	if logger == nil {
		logger = slog.Default()
	}
	return &duplicateLog{logger: logger, queues: make(map[string]*duplicateCount)}
}

// tell logs the duplicates of an enqueue.
func (d *duplicateLog) tell(inserts []Insert, receipts []Receipt) {
	for i, receipt := range receipts {
		if receipt.Duplicate && d.takes(inserts[i].Queue) {
			d.line(inserts[i], receipt.ID)
		}
	}
}

// line logs one duplicate.
func (d *duplicateLog) line(in Insert, there ID) {
	args := []any{"job", there, "queue", in.Queue}
	if in.Tenant != "" {
		args = append(args, "tenant", in.Tenant)
	}
	d.logger.Info("job duplicate", args...)
}

// takes counts a line, and reports whether to write it.
func (d *duplicateLog) takes(queue string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	count := d.queues[queue]
	if count == nil {
		count = &duplicateCount{}
		d.queues[queue] = count
		time.AfterFunc(duplicateWindow, func() { d.end(queue) })
	}
	if count.written < duplicateLines {
		count.written++
		return true
	}
	count.leftOut++
	return false
}

// end ends the window of a queue, and logs how many lines the client left out.
func (d *duplicateLog) end(queue string) {
	d.mu.Lock()
	leftOut := d.queues[queue].leftOut
	delete(d.queues, queue)
	d.mu.Unlock()
	if leftOut > 0 {
		d.logger.Info("lines left out", "event", "job duplicate", "queue", queue, "lines", leftOut)
	}
}
