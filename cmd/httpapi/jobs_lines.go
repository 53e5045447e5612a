package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// lines are consecutive lines of a stream.
type lines struct {
	jobs    []offered
	numbers []int // of the lines of the jobs; blank lines have no job
	bytes   int
	ordered bool  // a job of another batch must not be stored at the same time
	last    int   // the number of the last line
	err     error // why no line follows. io.EOF: there is none.
	// panicked is the value of the reader's panic.
	panicked any
}

// add adds the job of the last line.
func (l *lines) add(o offered, bytes int) {
	l.jobs, l.numbers, l.bytes = append(l.jobs, o), append(l.numbers, l.last), l.bytes+bytes
	// A key or an order key goes to the job that comes first, and what a job runs after must be there.
	l.ordered = l.ordered || o.job.Key != "" || o.job.OrderKey != "" || len(o.job.After) > 0
}

func (l *lines) full() bool { return len(l.jobs) >= streamBatch || l.bytes >= streamBytes }

// lineReader reads the lines of a stream ahead of the store, and keeps at most about twice what is stored together.
type lineReader struct {
	c     *call
	lines *bufio.Reader
	long  []byte // a line that is longer than the buffer
	now   lines  // read, not yet offered

	ready chan struct{} // holds a value when there is something to take
	room  chan struct{} // holds a value when all was taken
	ended chan struct{} // closed when run has ended

	mu      sync.Mutex
	offered lines
	stopped bool
}

func newLineReader(c *call, body io.Reader) *lineReader {
	r := &lineReader{c: c, ready: make(chan struct{}, 1), room: make(chan struct{}, 1), ended: make(chan struct{})}
	r.lines = bufio.NewReaderSize(patient{body, r}, streamBuffer)
	return r
}

// run reads until the end of the stream, or until stop.
func (r *lineReader) run() {
	defer close(r.ended)
	if r.now.panicked = guard(r.readAll); r.now.panicked != nil {
		r.offer()
	}
}

// readAll offers what it has whenever no whole line has come yet.
func (r *lineReader) readAll() {
	for {
		text, err := r.line()
		if text = bytes.TrimSpace(text); len(text) > 0 {
			r.now.add(r.c.read(text), len(text))
		}
		r.now.err = err
		if (err != nil || r.now.full() || !r.follows()) && !r.offer() || err != nil {
			return
		}
	}
}

// follows reports whether a whole line is there to be read.
func (r *lineReader) follows() bool {
	there, _ := r.lines.Peek(r.lines.Buffered())
	return bytes.IndexByte(there, '\n') >= 0
}

// line reads a line, which lasts until the next. At the end the error is io.EOF.
func (r *lineReader) line() ([]byte, error) {
	r.long = r.long[:0]
	for {
		part, err := r.lines.ReadSlice('\n')
		if most := r.c.api.options.Bounds.Body; int64(len(r.long)+len(part)) > most {
			return nil, problemOf(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("line %d is longer than %d bytes", r.now.last+1, most), "send shorter lines")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			r.long = append(r.long, part...)
			continue
		}
		if len(r.long) > 0 {
			r.long = append(r.long, part...)
			part = r.long
		}
		if err != nil && !errors.Is(err, io.EOF) { // a line that may be cut is neither stored nor counted
			return nil, problemOf(http.StatusRequestTimeout, "too_slow", "the stream did not go on", "go on after the line that this answer names")
		}
		if len(part) > 0 {
			r.now.last++
		}
		return part, err
	}
}

// offer adds what was read to what can be taken. It waits while that is full. False: stop was called.
func (r *lineReader) offer() bool {
	for {
		r.mu.Lock()
		if r.stopped {
			r.mu.Unlock()
			return false
		}
		if !r.offered.full() {
			break
		}
		r.mu.Unlock()
		<-r.room
	}
	defer r.mu.Unlock()
	to, now := &r.offered, &r.now
	to.jobs, to.numbers, to.bytes = append(to.jobs, now.jobs...), append(to.numbers, now.numbers...), to.bytes+now.bytes
	to.ordered, to.last, to.err, to.panicked = to.ordered || now.ordered, now.last, now.err, now.panicked
	clear(now.jobs)
	r.now = lines{jobs: now.jobs[:0], numbers: now.numbers[:0], last: now.last}
	signal(r.ready)
	return true
}

// take takes what was offered.
func (r *lineReader) take() lines {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.offered
	r.offered = lines{last: taken.last, err: taken.err}
	signal(r.room)
	return taken
}

// stop ends run, though the client may send nothing, and waits for its end.
func (r *lineReader) stop() {
	select {
	case <-r.ended:
		return
	default:
	}
	r.mu.Lock()
	r.stopped = true
	_ = r.c.deadlines.SetReadDeadline(time.Unix(1, 0)) // a recorder of tests has none
	r.mu.Unlock()
	signal(r.room)
	<-r.ended
}

// extend lets the next read wait for as long as a client may be idle. False: stop was called.
func (r *lineReader) extend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		_ = r.c.deadlines.SetReadDeadline(time.Now().Add(r.c.api.options.Bounds.Idle)) // a recorder of tests has none
	}
	return !r.stopped
}

// patient reads as long as something comes within the idle time.
type patient struct {
	body io.Reader
	of   *lineReader
}

func (p patient) Read(b []byte) (int, error) {
	if !p.of.extend() {
		return 0, io.ErrClosedPipe
	}
	return p.body.Read(b)
}

// signal leaves a value in a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
