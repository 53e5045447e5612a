package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
)

// topics are the topics of streams, beside queue:NAME.
var topics = map[string]func(ctx context.Context, a *API) (any, error){
	"overview": overview,
	"alerts": func(ctx context.Context, a *API) (any, error) {
		book, err := alert.Read(ctx, a.store)
		return map[string]any{"alerts": orEmpty(book.Alerts)}, err
	},
	"operations": func(ctx context.Context, a *API) (any, error) {
		found, err := operation.List(ctx, a.store, operation.Filter{Open: true})
		return map[string]any{"operations": orEmpty(found)}, err
	},
	"holders": func(ctx context.Context, a *API) (any, error) {
		found, err := presence.Holders(ctx, a.store)
		return map[string]any{"holders": orEmpty(found)}, err
	},
	"audit": func(ctx context.Context, a *API) (any, error) {
		found, err := a.client().Audit(ctx, sluice.AuditFilter{Limit: 20})
		withoutPayloads(found) // viewers follow the topic too
		return auditList{Entries: orEmpty(found)}, err
	},
	topicCancelled: nil, topicSignals: nil, topicHearing: nil, // they come from signals
}

const (
	// heartbeatEvery is how often a quiet stream says that it lives.
	heartbeatEvery = 15 * time.Second
	// maxTopics is the most topics of a stream, and overviewQueues the most queues of an overview.
	maxTopics, overviewQueues = 50, 100
)

// live adds the route of streams.
func (a *API) live() {
	a.collector = newCollector(a.store, a.options.Bounds.Idle, a.readTopic)
	addRaw(a, Route{
		Method: "GET", Path: "/stream", Name: "stream", Group: "live", Summary: "follow topics as they change",
		Text: "Answers server-sent events, by topic: `overview` (the first 100 queues with their counts), `queue:NAME`, `alerts`, `operations`, `holders`, `audit` (the last 20 entries), " +
			"`cancelled` (claimed jobs that somebody cancelled; a bounded token gets its own), `signals` (what makes a worker look: a queue with due jobs, a cancelled claim, an awaited job that has ended; " +
			"a bounded token gets those of its queues) and `hearing` (all: the server hears every change; less: also look from time to time). Each event has the whole topic as it is now, but those of `cancelled` and `signals` are changes. " +
			"With `Last-Event-ID` and the same topics it goes on after that event. If events after it are not kept any more, or the reader is too slow, the event `behind` says so; then each topic comes again. " +
			"Ids without data come too: they say how far the stream is. The event `end` says that the server ends, or that the token has ended or has other rights now.",
		Needs: access.Look | access.Work, scope: ofJobs, noun: "queue", waits: true, endless: true,
	}, func(_ huma.API, op *huma.Operation) {
		op.Parameters = []*huma.Param{
			{Name: "topics", In: "query", Required: true, Description: "names, with commas between them", Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "Last-Event-ID", In: "header", Description: "the id of the last event that the caller has", Schema: &huma.Schema{Type: huma.TypeString}},
		}
		op.Responses = map[string]*huma.Response{"200": {Description: "the events", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	}, func(w http.ResponseWriter, r *http.Request, c *call) error {
		names, err := c.topicsOf(r.Context(), r.URL.Query().Get("topics"))
		if err != nil {
			return err
		}
		return c.stream(w, r, names)
	})
}

// topicsOf reads the names of topics that the caller may follow.
func (c *call) topicsOf(ctx context.Context, text string) (names []string, err error) {
	for name := range strings.SplitSeq(text, ",") {
		queue, ofQueue := strings.CutPrefix(name, "queue:")
		_, known := topics[name]
		switch {
		case !known && !ofQueue:
			return nil, &sluice.InvalidError{Field: "topics", Rule: fmt.Sprintf("there is no topic %.80q; there are queue:NAME, overview, alerts, operations, holders, audit, cancelled, signals and hearing", name)}
		case name == topicSignals || name == topicHearing:
			if len(c.caller.Tenants) > 0 {
				return nil, outOfBounds("the token is bounded to some tenants, and signals are of all")
			}
		case name == topicCancelled: // callers with bounds get their own
		case !c.caller.May(access.Look):
			return nil, problemOf(http.StatusForbidden, "forbidden", "the role "+string(c.caller.Role)+" may follow only the topics cancelled, signals and hearing", "use a token with another role, or ask an admin for one")
		case !ofQueue && !c.caller.None():
			return nil, outOfBounds("the token is bounded to some queues or tenants")
		case ofQueue && (len(c.caller.Tenants) > 0 || !c.caller.Queue(queue)):
			return nil, sluice.ErrNotFound
		}
		if ofQueue && !slices.Contains(names, name) {
			if _, err := c.api.client().Queue(ctx, queue); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > maxTopics {
		return nil, &sluice.InvalidError{Field: "topics", Rule: fmt.Sprintf("%d topics must be at most %d", len(names), maxTopics)}
	}
	return names, nil
}

// readTopic reads a topic.
func (a *API) readTopic(ctx context.Context, topic string) (any, error) {
	if queue, of := strings.CutPrefix(topic, "queue:"); of {
		c := &call{api: a}
		view, err := c.queue(ctx, queue)
		view.Now = time.Time{} // or each reading would be an event
		return view, err
	}
	return topics[topic](ctx, a)
}

// overview counts the jobs of the first queues.
func overview(ctx context.Context, a *API) (any, error) {
	queues, err := a.client().Queues(ctx, sluice.QueueFilter{Limit: overviewQueues})
	if err != nil {
		return nil, err
	}
	depths := []sluice.Depth{}
	for _, q := range queues {
		depth, err := a.store.Depth(ctx, q.Name, depthLimit)
		if err != nil {
			return nil, err
		}
		depths = append(depths, depth)
	}
	return map[string]any{"queues": depths}, nil
}

// stream sends events until the client leaves or the server ends.
func (c *call) stream(w http.ResponseWriter, r *http.Request, names []string) error {
	collector := c.api.collector
	var bounds *access.Bounds
	if !c.caller.None() {
		bounds = &c.caller.Bounds
	}
	l := collector.listen(names, r.Header.Get("Last-Event-ID"), bounds)
	defer collector.leave(l)
	if l.topics[topicCancelled] || l.topics[topicSignals] {
		collector.awaitHearing(r.Context())
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	w.WriteHeader(http.StatusOK)
	_ = c.deadlines.SetReadDeadline(time.Time{})
	out := eventWriter{Writer: bufio.NewWriter(patientWriter{w, c.deadlines, c.api.options.Bounds.Idle}), at: -1}
	heartbeat := time.NewTicker(heartbeatEvery)
	defer heartbeat.Stop()
	again := time.NewTicker(access.Kept)
	defer again.Stop()
	_, _ = fmt.Fprint(out, ": the stream begins\nretry: 1000\n\n")
	for {
		if out.Flush() != nil { // the client is gone, or too slow
			return nil
		}
		select {
		case <-l.woken:
			if c.ended(&out) {
				return nil
			}
			out.write(l, collector.take(l))
		case <-again.C:
			if c.ended(&out) {
				return nil
			}
		case <-heartbeat.C:
			_, _ = fmt.Fprint(out, ": alive\n\n")
			if at, all := collector.place(l); all {
				out.place(l, at)
			}
		case <-c.api.draining:
			out.end("the server ends")
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// ended ends a stream whose caller may not go on.
func (c *call) ended(out *eventWriter) bool {
	p, is := c.refused()
	if is {
		out.end(p.Why)
	}
	return is
}

// eventWriter writes the events of a stream.
type eventWriter struct {
	*bufio.Writer
	at int64 // the place that the client knows
}

// write writes what a listener gets.
func (w *eventWriter) write(l *listener, b taken) {
	if b.behind {
		_, _ = fmt.Fprint(w, "event: behind\ndata: {\"reason\":\"some events are not kept any more\"}\n\n")
	}
	for _, e := range b.events {
		w.at = e.number
		_, _ = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", l.id(e.number), e.topic, e.data)
	}
	w.place(l, b.at)
}

// end writes the last event.
func (w *eventWriter) end(reason string) {
	text, _ := json.Marshal(map[string]string{"reason": reason}) // a text
	_, _ = fmt.Fprintf(w, "event: end\ndata: %s\n\n", text)
	_ = w.Flush()
}

// place tells the client how far it is, so that a stream that was cut goes on there.
func (w *eventWriter) place(l *listener, at int64) {
	if w.at != at {
		w.at = at
		_, _ = fmt.Fprintf(w, "id: %s\n\n", l.id(at))
	}
}
