package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// silence is how long a stream may say nothing. The server says each 15 s that it lives.
	silence = 40 * time.Second
	// maxLine is the most bytes of a line of a stream.
	maxLine = 1 << 20
)

// Watch follows the signals of the server. A stream that was cut goes on where it was. While it is cut, and for a token that may
// not follow it, the store hears nothing, and says so.
func (s *Store) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	s.calls.Add(1)
	defer s.calls.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	signal(sluice.Signal{Hearing: sluice.HearsLess})
	wait, last := leastWait, ""
	for ctx.Err() == nil {
		heard, err := s.listen(ctx, &last, signal)
		if ctx.Err() != nil {
			break
		}
		signal(sluice.Signal{Hearing: sluice.HearsLess})
		if heard {
			wait = leastWait
		}
		if errors.Is(err, ErrRefused) || errors.Is(err, sluice.ErrNotFound) {
			wait = time.Minute // until somebody changes the token or the server
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait)): //nolint:gosec // spreads callers
		}
		wait = min(2*wait, time.Minute)
		if !errors.Is(err, ErrRefused) {
			wait = min(wait, mostWait)
		}
	}
	return nil
}

// listen follows one stream to its end. Heard says that it began. Last is the id of the last event of the streams before.
func (s *Store) listen(ctx context.Context, last *string, signal func(sluice.Signal)) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	const verb = "follow signals"
	message, err := s.message(ctx, request{verb: verb, path: "/stream", query: params{"topics": {"signals,hearing"}}.values()}, false)
	if err != nil {
		return false, err
	}
	if *last != "" {
		message.Header.Set("Last-Event-ID", *last)
	}
	answer, err := s.client.Do(message)
	if err != nil {
		return false, withoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxLine)
	if answer.StatusCode != http.StatusOK {
		lines.Scan()
		return false, readProblem(answer.StatusCode, lines.Bytes()).err(verb)
	}
	signal(sluice.Signal{}) // what was missed until now
	id, event := *last, ""
	for lines.Scan() {
		quiet.Reset(silence)
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "":
			event, *last = "", id
		case "event":
			event = value
		case "data":
			if err := tell(event, value, signal); err != nil {
				return true, err
			}
		}
	}
	return true, lines.Err()
}

// tell reads an event, and tells of its signal.
func tell(event, data string, signal func(sluice.Signal)) error {
	switch event {
	case "signals":
		var s struct {
			Queue     string    `json:"queue"`
			Cancelled sluice.ID `json:"cancelled"`
			Ended     sluice.ID `json:"ended"`
		}
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			return fmt.Errorf("read a signal: %w", err)
		}
		signal(sluice.Signal{Queue: s.Queue, Cancelled: s.Cancelled, Ended: s.Ended})
	case "hearing":
		var s struct {
			Hearing sluice.Hearing `json:"hearing"`
		}
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			return fmt.Errorf("read how far the server hears: %w", err)
		}
		if s.Hearing != sluice.HearsAll { // a word of a newer server promises nothing
			s.Hearing = sluice.HearsLess
		}
		signal(sluice.Signal{Hearing: s.Hearing})
	case "behind": // some signals are lost
		signal(sluice.Signal{})
	}
	return nil
}
