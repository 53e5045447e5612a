package temporaltest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// tellEvery is how often a long build says how far it is.
const tellEvery = 15 * time.Second

// progress counts what «go build -v» prints: the modules that it downloads and the packages that it compiles. All
// other lines are kept, since they say what went wrong.
type progress struct {
	begun time.Time

	mu                sync.Mutex
	half              []byte // a line without its end
	modules, packages int
	rest              bytes.Buffer
}

// Write takes a part of the output.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.half = append(p.half, text...)
	for {
		line, rest, whole := bytes.Cut(p.half, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		switch {
		case bytes.HasPrefix(line, []byte("go: downloading ")):
			p.modules++
		case !bytes.ContainsAny(line, " :"):
			p.packages++
		default:
			fmt.Fprintf(&p.rest, "%s\n", line)
		}
		p.half = rest
	}
}

// String says how far the build is.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var did []string
	if p.modules > 0 {
		did = append(did, fmt.Sprintf("%d modules downloaded", p.modules))
	}
	did = append(did, fmt.Sprintf("%d packages compiled", p.packages))
	return fmt.Sprintf("%s after %s", strings.Join(did, ", "), time.Since(p.begun).Round(time.Second))
}

// other gives the lines that are no progress.
func (p *progress) other() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rest.String() + string(p.half)
}

// tell says how far the build is, again and again, until ctx ends.
func (p *progress) tell(ctx context.Context, out io.Writer) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fmt.Fprintln(out, "building a Temporal server:", p)
		}
	}
}
