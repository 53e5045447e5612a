package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// boundedBuffer keeps what is written up to a limit, and notes if there was more.
type boundedBuffer struct {
	bytes.Buffer
	limit int
	over  bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); len(p) > room {
		b.over = true
		b.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// tailBuffer keeps the end of what is written.
type tailBuffer struct {
	mu    sync.Mutex
	text  []byte
	limit int
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if over := len(b.text) - b.limit; over > 0 {
		b.text = append(b.text[:0], b.text[over:]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// lineWriter passes on what is written, line by line. A line that is too long is the last.
type lineWriter struct {
	each  func(line []byte)
	over  func() // called once, after a line that is too long
	limit int

	rest []byte
	deaf bool
}

func (w *lineWriter) Write(p []byte) (int, error) {
	if w.deaf {
		return len(p), nil
	}
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			break
		}
		w.each(line)
		w.rest = rest
	}
	if len(w.rest) > w.limit {
		w.deaf, w.rest = true, nil
		w.over()
	}
	return len(p), nil
}

// end passes on a last line without a newline.
func (w *lineWriter) end() {
	if len(w.rest) > 0 {
		w.each(w.rest)
		w.rest = nil
	}
}

// maxSaid is how much of a program's line the log gets.
const maxSaid = 16 << 10

// lineLog logs a program's output line by line, so that it can neither begin nor continue a line of the log. Only the
// beginning of one line is kept.
type lineLog struct {
	each  func(line string, cut int)
	clean func(string) string // removes secrets

	mu   sync.Mutex
	rest []byte // of the line, with any secret at the border whole
	size int    // of the line
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for left := p; len(left) > 0; {
		line, next, ended := bytes.Cut(left, []byte("\n"))
		l.rest = append(l.rest, line[:min(len(line), maxSaid+tailBorder-len(l.rest))]...)
		l.size += len(line)
		if ended {
			l.hand()
		}
		left = next
	}
	return len(p), nil
}

// end passes on a last line without a newline.
func (l *lineLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hand()
}

func (l *lineLog) hand() {
	line := l.clean(strings.ToValidUTF8(strings.TrimRight(string(l.rest), "\r"), "\uFFFD"))
	line = strings.ToValidUTF8(line[:min(len(line), maxSaid)], "")
	if line != "" {
		l.each(strings.Map(printable, line), max(0, l.size-maxSaid))
	}
	l.rest, l.size = l.rest[:0], 0
}

// errTooSilent means that a program gave no sign of life.
var errTooSilent = errors.New("it gave no sign of life")

// ear notices that a program is alive, by any output.
type ear struct {
	within time.Duration
	timer  *time.Timer // nil: no limit
}

// listen ends a program that writes nothing for so long.
func listen(within time.Duration, end context.CancelCauseFunc) *ear {
	e := &ear{within: within}
	if within > 0 {
		e.timer = time.AfterFunc(within, func() { end(fmt.Errorf("%w for %s", errTooSilent, within)) })
	}
	return e
}

func (e *ear) Write(p []byte) (int, error) {
	if e.timer != nil {
		e.timer.Reset(e.within)
	}
	return len(p), nil
}

func (e *ear) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}
