package browser_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// call sends a command of the browser's protocol.
func call[P, R any](t testing.TB, ctx context.Context, command cdp.Command[P, R], parameters P) (out R) {
	t.Helper()
	out, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, parameters) })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// held is the memory of a tab after a garbage collection.
type held struct{ heapMB, nodes, listeners float64 }

// holds collects the garbage of a tab, and returns what is left. It collects several times, because garbage that other
// garbage refers to survives one collection.
func (p *tab) holds() held {
	p.Helper()
	least := held{heapMB: math.Inf(1)}
	for range 10 {
		call(p, p.ctx, heapprofiler.CollectGarbage, cdp.Empty{})
		counted := call(p, p.ctx, memory.GetDOMCounters, cdp.Empty{})
		heap := call(p, p.ctx, runtime.GetHeapUsage, cdp.Empty{}).UsedSize / 1e6
		least = held{min(least.heapMB, heap), float64(counted.Nodes), float64(counted.JsEventListeners)}
	}
	return least
}

// TestATabThatStaysOpenHoldsNoMore sends updates as fast as the tab takes them. Each update has new rows.
func TestATabThatStaysOpenHoldsNoMore(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/jobs", "/dead", "/audit", "/queues/mails"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			updates := newUpdates(t)
			p := open(t, updates.server, path)
			first := updates.heldAfter(p, 100)
			last := updates.heldAfter(p, 200)
			t.Logf("after 100 updates %+v, after 300 %+v", first, last)
			if last.heapMB > 1.1*first.heapMB+0.5 || last.nodes > 1.1*first.nodes+100 || last.listeners > 1.1*first.listeners+20 {
				t.Errorf("after 300 updates the tab holds %+v, after 100 %+v", last, first)
			}
		})
	}
}

// TestAPointerThatRestsKeepsFewRows leaves the pointer on a table that gets a new row with each update.
func TestAPointerThatRestsKeepsFewRows(t *testing.T) {
	t.Parallel()
	updates := newUpdates(t)
	updates.keepsRows = true
	p := open(t, updates.server, "/queues")
	updates.take(p, 1)
	const rows = `String(document.querySelectorAll("#live tr[data-row]").length)`
	begun, err := strconv.Atoi(p.text(rows))
	if err != nil || begun < 2 {
		t.Fatalf("%d rows: %v", begun, err)
	}
	p.point("#live tbody tr:last-child")
	updates.take(p, 2)
	if now := p.text(rows); now != strconv.Itoa(begun+2) {
		t.Errorf("after 2 new rows below the pointer the table has %s rows, want %d", now, begun+2)
	}
	updates.take(p, 200)
	if now, err := strconv.Atoi(p.text(rows)); err != nil || now > 4*begun {
		t.Errorf("after 200 new rows the table has %d rows, at first %d: %v", now, begun, err)
	}
}

// updates is a server that shows the pages of the shop. Its streams repeat the shop's first update on demand.
type updates struct {
	server *server
	asked  chan int // the number of updates to send
	sent   int
	// keepsRows keeps all rows of an update but the first unchanged.
	keepsRows bool
}

func newUpdates(t *testing.T) *updates {
	t.Helper()
	target, err := url.Parse(shop.url)
	if err != nil {
		t.Fatal(err)
	}
	u := &updates{asked: make(chan int)}
	// Rewrite adds no X-Forwarded-For header. With this header the shop would refuse the request, because it asks
	// nobody for a token.
	pages := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("live") {
			u.stream(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(site.CloseClientConnections)
	u.server = &server{url: site.URL + "/"}
	return u
}

// heldAfter returns the memory of a tab after more updates. The last one comes alone. A tab holds the text of all
// updates that arrived together until the next one arrives.
func (u *updates) heldAfter(p *tab, more int) held {
	p.Helper()
	u.take(p, more-1)
	u.take(p, 1)
	return p.holds()
}

// take sends updates to a tab, and waits until it shows the last.
func (u *updates) take(p *tab, count int) {
	p.Helper()
	select {
	case u.asked <- count:
	case <-time.After(patience):
		p.Fatal("the tab never asked for its stream: " + p.now())
	}
	p.until(fmt.Sprintf(`document.getElementById("strip").innerText.includes("update %d.")`, u.sent+count))
	u.sent += count
}

var (
	// stripOf matches the part of an update with the strip, and rowOf matches the ID of a row.
	stripOf = regexp.MustCompile(`(<hx-partial hx-target="#strip"[^>]*>).*(</hx-partial>)`)
	rowOf   = regexp.MustCompile(`(<tr id="[^"]*)(" data-row)`)
)

// stream repeats an update, with new rows each time.
func (u *updates) stream(w http.ResponseWriter, r *http.Request) {
	first, err := firstOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for n := 0; ; {
		if out.Flush() != nil {
			return
		}
		select {
		case count := <-u.asked:
			for range count {
				n++
				update := u.withNewRows(first, n)
				_, _ = w.Write(stripOf.ReplaceAll(update, fmt.Appendf(nil, "${1}<p>update %d.</p>$2", n))) // the tab may have closed
			}
		case <-r.Context().Done():
			return
		}
	}
}

// withNewRows gives new IDs to the rows of an update.
func (u *updates) withNewRows(update []byte, n int) []byte {
	changed := len(update)
	if at := rowOf.FindIndex(update); u.keepsRows && at != nil {
		changed = at[1]
	}
	return append(rowOf.ReplaceAll(update[:changed], fmt.Appendf(nil, "${1}-%d$2", n)), update[changed:]...)
}

// firstOf reads the first update of a stream of the shop.
func firstOf(r *http.Request) ([]byte, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, shop.url+r.URL.RequestURI()[1:], nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewReader(answer.Body)
	for {
		var update []byte
		for !bytes.HasSuffix(update, []byte("\n\n")) {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return nil, err
			}
			update = append(update, line...)
		}
		if bytes.HasPrefix(update, []byte("data:")) { // other lines are heartbeats, or events without a picture
			return update, nil
		}
	}
}

// BenchmarkFirstPaint measures the time to the first paint, in a browser without a cache on a processor with a quarter
// of its speed.
func BenchmarkFirstPaint(b *testing.B) {
	for _, path := range []string{"", "jobs", "dead", "queues/mails", "waves"} {
		b.Run("/"+path, func(b *testing.B) {
			total := 0.0
			for b.Loop() {
				total += firstPaint(b, path)
			}
			b.ReportMetric(total/float64(b.N), "ms-to-paint")
		})
	}
}

// firstPaint opens a page in a tab without a cache, and returns the milliseconds until the first paint.
func firstPaint(b *testing.B, path string) float64 {
	b.Helper()
	ctx, leave := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	defer leave()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), seen); err != nil {
		b.Fatal(err)
	}
	call(b, ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4})
	if err := chromedp.Do(ctx, chromedp.Navigate(shop.url+path)); err != nil {
		b.Fatal(err)
	}
	painted, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`new Promise((done) => new PerformanceObserver((list) => {
		const paint = list.getEntriesByName("first-contentful-paint")[0]
		if (paint) done(paint.startTime)
	}).observe({ type: "paint", buffered: true }))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return painted
}
