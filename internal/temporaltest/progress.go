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

// tellEvery is the time between two reports of a long build.
const tellEvery = 15 * time.Second

// progress counts the output of `go build -v`: modules that it downloads and packages that it
// compiles. All other lines are kept, because they explain errors.
type progress struct {
	begun time.Time

	mu                sync.Mutex
	half              []byte // a line without its end
	modules, packages int
	rest              bytes.Buffer
}

// Write reads a part of the output.
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

// String describes the progress of the build.
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

// other returns the lines that are no progress.
func (p *progress) other() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rest.String() + string(p.half)
}

// tell reports the progress regularly, until ctx ends.
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
