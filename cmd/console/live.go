package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/access"
)

// liveParameter asks for the stream of a page instead of the page.
const liveParameter = "live"

const (
	// paintEvery is how often a watched page is painted anew. paintShare bounds the cost of all pages together, to 3 % of the
	// time: a painting is followed by this many times its duration for each page that is watched.
	paintEvery, paintShare = time.Second, 33
	// paintAtLeast is the longest pause: what waited for a store that answers again is no cost.
	paintAtLeast = 5 * time.Second
	// readAgain is the pause after the store could not be read.
	readAgain = 2 * time.Second
	// slowAfter is how long a painting takes before people are told that the picture they see grows old.
	slowAfter = 3 * time.Second
	// heartbeatEvery is how often a quiet stream says that it lives.
	heartbeatEvery = 15 * time.Second
	// sendTime is how long a reader may take for an event.
	sendTime = 30 * time.Second
	// maxWatchers is the most streams.
	maxWatchers = 5000
)

// hub paints each page that somebody watches, once for all who see the same.
type hub struct {
	console *Console

	mu       sync.Mutex
	pictures map[string]*picture
	watchers int
}

// picture is a page as people with the same rights see it now.
type picture struct {
	key      string
	watchers map[*watcher]bool
	last     []byte    // event; nil: not painted yet
	painted  time.Time // when the store was last read for it
	stop     context.CancelFunc
}

// watcher is a stream. It gets the newest event: one that waits is replaced.
type watcher struct {
	visit  *visit
	events chan []byte // room for one
}

func newHub(c *Console) *hub { return &hub{console: c, pictures: make(map[string]*picture)} }

// join adds a watcher to the picture of its page, which is painted from then on.
func (h *hub) join(v *visit) (*watcher, *picture) {
	key := v.viewer.rights() + v.path + "?" + v.query.Encode()
	w := &watcher{visit: v, events: make(chan []byte, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers >= maxWatchers {
		return nil, nil
	}
	h.watchers++
	p := h.pictures[key]
	if p == nil {
		ctx, stop := context.WithCancel(context.Background())
		p = &picture{key: key, watchers: make(map[*watcher]bool), stop: stop}
		h.pictures[key] = p
		go h.paint(ctx, p)
	} else if p.last != nil {
		w.events <- p.last
	}
	p.watchers[w] = true
	return w, p
}

// leave removes a watcher. The last one ends the painting.
func (h *hub) leave(w *watcher, p *picture) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers--
	if delete(p.watchers, w); len(p.watchers) == 0 {
		p.stop()
		delete(h.pictures, p.key)
	}
}

// paint paints a picture until nobody watches it.
func (h *hub) paint(ctx context.Context, p *picture) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		begun := time.Now()
		if v := h.anyOf(p); v != nil {
			slow := time.AfterFunc(slowAfter, func() { h.tell(p, h.old(p, "slow", map[string]any{})) })
			e, read := h.eventOf(ctx, v, p)
			slow.Stop()
			if e != nil {
				h.tell(p, e)
			}
			if !read {
				timer.Reset(readAgain)
				continue
			}
		}
		timer.Reset(h.pause(time.Since(begun)))
	}
}

// pause is how long a page rests after a painting that took so long.
func (h *hub) pause(took time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(max(paintEvery, paintShare*took*time.Duration(len(h.pictures))), paintAtLeast)
}

// anyOf returns a copy of the visit of somebody who watches.
func (h *hub) anyOf(p *picture) *visit {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range p.watchers {
		v := *w.visit
		v.calls, v.command, v.late = nil, nil, false
		return &v
	}
	return nil
}

// eventOf paints a page. If the store cannot be read, the event says so, and the last picture stays. If the session of the visit has
// ended, or has other rights now, there is no event: its stream ends soon, and the next painting may be by another's.
func (h *hub) eventOf(ctx context.Context, v *visit, p *picture) (e []byte, read bool) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	if v.ended(ctx) { // or others would share what it reads by its new rights
		return nil, false
	}
	s := v.look(ctx)
	if s.Problem != nil && s.Problem.Status == http.StatusUnauthorized {
		return nil, false
	}
	if s.Problem != nil {
		return h.old(p, "stale", map[string]any{"status": s.Problem.Status, "why": s.Problem.Why, "do": s.Problem.Do}), false
	}
	var out bytes.Buffer
	if err := h.console.render(&out, s, "live"); err != nil {
		return h.old(p, "stale", map[string]any{"status": http.StatusInternalServerError, "why": err.Error()}), false
	}
	if v.ended(ctx) { // meanwhile
		return nil, false
	}
	h.mu.Lock()
	p.painted = s.At
	h.mu.Unlock()
	return message(out.String()), true
}

// old is an event about a picture that is no longer true: it says of when it is.
func (h *hub) old(p *picture, name string, data map[string]any) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !p.painted.IsZero() {
		data["at"] = p.painted.UTC()
	}
	return event(name, data)
}

// tell sends an event to all who watch, unless it is as the last one.
func (h *hub) tell(p *picture, e []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bytes.Equal(p.last, e) {
		return
	}
	p.last = e
	for w := range p.watchers {
		select {
		case <-w.events:
		default:
		}
		w.events <- e
	}
}

// event is a named event with data as JSON.
func event(name string, data map[string]any) []byte {
	text, _ := json.Marshal(data) // texts and numbers
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, text)
}

// message is an event with HTML.
func message(html string) []byte {
	return []byte("data: " + strings.ReplaceAll(strings.TrimSpace(html), "\n", "\ndata: ") + "\n\n")
}

// ended reports whether somebody who watches may see the page no longer: the session has ended, or has other rights now. A
// store that does not answer ends nothing.
func (v *visit) ended(ctx context.Context) bool {
	body, err := v.caller.send(ctx, http.MethodGet, "/whoami", nil, nil)
	var now viewer
	if err == nil && json.Unmarshal(body, &now) == nil {
		return now.rights() != v.viewer.rights()
	}
	return statusOf(err) == http.StatusUnauthorized || codeOf(err) == "too_many_unknown"
}

// sessionEnded is the last event of a stream whose session has ended.
func sessionEnded() []byte {
	return event("ended", map[string]any{"why": "the session has ended"})
}

// stream sends the pictures of a page until the client leaves, its session ends, or the server does.
func (c *Console) stream(w http.ResponseWriter, r *http.Request, v *visit) {
	watcher, p := c.live.join(v)
	if watcher == nil {
		http.Error(w, "too many pages are open; close some", http.StatusServiceUnavailable)
		return
	}
	defer c.live.leave(watcher, p)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Time{})
	out := bufio.NewWriter(w)
	send := func(e []byte) bool {
		_ = connection.SetWriteDeadline(time.Now().Add(sendTime))
		_, _ = out.Write(e)
		return out.Flush() == nil && connection.Flush() == nil
	}
	heartbeat := time.NewTicker(heartbeatEvery)
	defer heartbeat.Stop()
	again := time.NewTicker(access.Kept)
	defer again.Stop()
	for sent := send([]byte(": the stream begins\n\n")); sent; {
		select {
		case e := <-watcher.events:
			if v.ended(r.Context()) {
				send(sessionEnded())
				return
			}
			sent = send(e)
		case <-again.C:
			if v.ended(r.Context()) {
				send(sessionEnded())
				return
			}
		case <-heartbeat.C:
			sent = send(event("alive", map[string]any{}))
		case <-c.draining:
			send(event("restarting", map[string]any{"why": "the server ends"}))
			return
		case <-r.Context().Done():
			return
		}
	}
}
