package event

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// DefaultLimit is how many lines of one event a process writes for one queue within a window.
	DefaultLimit = 10
	// Window is the time within which the lines of an event and a queue are counted.
	Window = 10 * time.Second
)

// Log writes events with the name of their holder. Within a window, it writes only a limited number
// of lines per event and queue. The number of omitted lines follows when the window ends, or at
// Flush. Many goroutines may use a Log.
type Log struct {
	logger *slog.Logger
	limit  int

	mu     sync.Mutex
	slots  map[slot]*count
	tooOld time.Time // when the store last refused this program because the schema is too new
}

// slot is an event and a queue, whose lines are counted together.
type slot struct {
	event *Event
	queue string
}

// count is the number of a slot's lines in the current window.
type count struct {
	until   time.Time
	written int
	leftOut int
	timer   *time.Timer // runs while lines were omitted
}

// NewLog makes a log for a holder, or for a part without a name. Limit is how many lines it writes
// per event, queue and window. 0: DefaultLimit; negative: all.
func NewLog(logger *slog.Logger, holder string, limit int) *Log {
	if limit == 0 {
		limit = DefaultLimit
	}
	if holder != "" {
		logger = logger.With("holder", holder)
	}
	return &Log{logger: logger, limit: limit, slots: make(map[slot]*count)}
}

// Emit logs an event; args are as in slog. The queue may be empty, and empty arguments are omitted.
//
// Once the store refuses this program because the schema is too new, every call fails for this
// reason. Emit then logs one line about it, instead of all lines with this error.
func (l *Log) Emit(e *Event, queue string, args ...any) {
	if err := newerSchema(args); err != nil {
		if !l.tellsTooOld() {
			return
		}
		e, queue, args = ProgramTooOld, "", []any{"error", err}
	}
	if !l.takes(e, queue) {
		return
	}
	line := slog.NewRecord(time.Now(), e.Level, e.Name, 0)
	if queue != "" {
		line.AddAttrs(slog.String("queue", queue))
	}
	l.write(line, args)
}

// EmitJob logs an event of a job that the holder has claimed.
func (l *Log) EmitJob(e *Event, c *sluice.Claim, args ...any) {
	if !l.takes(e, c.Queue) {
		return
	}
	line := slog.NewRecord(time.Now(), e.Level, e.Name, 0)
	line.AddAttrs(slog.Any("job", c.ID), slog.String("queue", c.Queue))
	if c.Tenant != "" {
		line.AddAttrs(slog.String("tenant", c.Tenant))
	}
	line.AddAttrs(slog.Int("attempt", c.Attempts+1))
	l.write(line, args)
}

// newerSchema finds a [sluice.ErrNewerSchema] among the arguments of a line.
func newerSchema(args []any) error {
	for _, arg := range args {
		if err, is := arg.(error); is && errors.Is(err, sluice.ErrNewerSchema) {
			return err
		}
	}
	return nil
}

// tellsTooOld reports whether to log that the store refuses this program: at most once a minute.
func (l *Log) tellsTooOld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.tooOld
	l.tooOld = time.Now()
	return l.tooOld.Sub(before) > time.Minute
}

func (l *Log) write(line slog.Record, args []any) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i+1] == nil || args[i+1] == "" {
			continue
		}
		line.Add(args[i], args[i+1])
	}
	_ = l.logger.Handler().Handle(context.Background(), line) // as slog does it
}

// takes reports whether to write a line, and counts it.
func (l *Log) takes(e *Event, queue string) bool {
	if !l.logger.Enabled(context.Background(), e.Level) {
		return false
	}
	if l.limit < 0 {
		return true
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slot{e, queue}
	c := l.slots[at]
	if c == nil {
		c = &count{}
		l.slots[at] = c
	}
	if !now.Before(c.until) && c.leftOut == 0 {
		c.until, c.written = now.Add(Window), 0
	}
	if c.written < l.limit && c.leftOut == 0 {
		c.written++
		return true
	}
	c.leftOut++
	if c.timer == nil {
		c.timer = time.AfterFunc(c.until.Sub(now), func() { l.emitLeftOut(at) })
	}
	return false
}

// emitLeftOut ends a window, and logs how many lines it omitted.
func (l *Log) emitLeftOut(at slot) {
	l.mu.Lock()
	c := l.slots[at]
	n := c.leftOut
	if c.timer != nil {
		c.timer.Stop()
	}
	c.leftOut, c.timer = 0, nil
	l.mu.Unlock()
	if n == 0 {
		return
	}
	line := slog.NewRecord(time.Now(), at.event.Level, LinesLeftOut.Name, 0)
	line.AddAttrs(slog.String("event", at.event.Name))
	if at.queue != "" {
		line.AddAttrs(slog.String("queue", at.queue))
	}
	line.AddAttrs(slog.Int("lines", n))
	_ = l.logger.Handler().Handle(context.Background(), line) // as slog does it
}

// Flush logs how many lines were omitted so far.
func (l *Log) Flush() {
	l.mu.Lock()
	var open []slot
	for at, c := range l.slots {
		if c.leftOut > 0 {
			open = append(open, at)
		}
	}
	l.mu.Unlock()
	for _, at := range open {
		l.emitLeftOut(at)
	}
}
