package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/internal/wire"
)

// request is a call of the API.
type request struct {
	// verb says what the call does, for errors.
	verb         string
	method, path string // GET if empty
	query        url.Values
	// body makes the body of a try. Again says that an earlier try may have been carried out. Nil: none.
	body func(again bool) ([]byte, error)
	// act goes into the audit. Nil: none.
	act *sluice.Act
	// out gets the answer. Nil: it is not read.
	out any
	// check looks for a problem in an answer that came. Nil: it does not.
	check func() *problem
}

const (
	// leastWait and mostWait bound the wait before a call is tried again.
	leastWait, mostWait = 10 * time.Millisecond, 2 * time.Second
	// tries is how many tries fit into the time of a call if nothing answers.
	tries = 3
	// maxAnswer is the most bytes of an answer.
	maxAnswer = 512 << 20
)

// call sends a request, and sends it again while the server is out of reach. Each request can be repeated: by IDs, tokens and
// the ID of the act, the server recognises what it has done.
func (s *Store) call(ctx context.Context, r request) error {
	if err := s.opened(r.verb); err != nil {
		return err // a request could be answered before the closing ends it
	}
	s.calls.Add(1)
	defer s.calls.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.CallTimeout, errGaveUp)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	wait := leastWait
	for again := false; ; again = true {
		p, err := s.try(ctx, r, again)
		switch {
		case err == nil && p == nil:
			return nil
		case s.closing.Err() != nil:
			return fmt.Errorf("%s: the store is closed: %w", r.verb, sluice.ErrUnavailable)
		case errors.Is(err, sluice.ErrInvalid):
			return fmt.Errorf("%s: %w", r.verb, err)
		case errors.As(err, new(*CertificateError)): // it does not pass within the time of a call
			return fmt.Errorf("%s: %w: %w", r.verb, sluice.ErrUnavailable, err)
		case p != nil && !passes[p.Code]:
			return p.err(r.verb)
		}
		if p == nil {
			err = fmt.Errorf("%w: %w", sluice.ErrUnavailable, err) // also if the caller ends the call
		} else {
			wait = max(wait, min(seconds(p.RetryAfter), mostWait))
			err = p.err(r.verb)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait)): //nolint:gosec // spreads callers
		}
		wait = min(2*wait, mostWait)
		if ctx.Err() != nil {
			return s.gaveUp(ctx, r, err)
		}
	}
}

// errGaveUp ends a call that the server did not answer in time.
var errGaveUp = errors.New("gave up")

// gaveUp returns the error of a call that has ended without an answer.
func (s *Store) gaveUp(ctx context.Context, r request, last error) error {
	switch {
	case s.closing.Err() != nil:
		return fmt.Errorf("%s: the store is closed: %w", r.verb, sluice.ErrUnavailable)
	case errors.Is(context.Cause(ctx), errGaveUp):
		return fmt.Errorf("%s: gave up after %s: %w: %w", r.verb, s.options.CallTimeout, sluice.ErrUnavailable, last)
	}
	return fmt.Errorf("%s: %w: %w", r.verb, context.Cause(ctx), last)
}

// try sends a request once. The error says that no answer came.
func (s *Store) try(ctx context.Context, r request, again bool) (*problem, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout/tries)
	defer cancel()
	message, err := s.message(ctx, r, again)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(message)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case answer.StatusCode >= http.StatusMultipleChoices:
		return readProblem(answer.StatusCode, body), nil
	case r.out == nil:
		return nil, nil
	}
	if err := json.Unmarshal(body, r.out); err != nil {
		return &problem{Status: answer.StatusCode, Code: "no_problem", Why: "the answer is not that of a Sluice server: " + err.Error(), Do: "look at the address"}, nil
	}
	if r.check != nil {
		return r.check(), nil
	}
	return nil, nil
}

// message makes the message of a try.
func (s *Store) message(ctx context.Context, r request, again bool) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if r.body != nil {
		text, err := r.body(again)
		if err != nil {
			return nil, feature.Invalid("request", err.Error())
		}
		body = bytes.NewReader(text)
	}
	at := s.root + r.path
	if len(r.query) > 0 {
		at += "?" + r.query.Encode()
	}
	method := r.method
	if method == "" {
		method = http.MethodGet
	}
	message, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return nil, feature.Invalid("request", err.Error())
	}
	if r.body != nil {
		message.Header.Set("Content-Type", "application/json")
	}
	if s.options.Token != "" {
		message.Header.Set("Authorization", "Bearer "+s.options.Token)
	}
	if r.act != nil {
		if strings.ContainsFunc(r.act.By, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return nil, feature.Invalid("by", "must have no control characters")
		}
		message.Header.Set("Sluice-By", r.act.By)
		if !r.act.ID.IsZero() {
			message.Header.Set("Idempotency-Key", r.act.ID.String())
		}
	}
	return message, nil
}

// withoutURL returns the cause of an error of a client: the address is known, and may be long.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if certificate := AsCertificateError(err); certificate != nil {
		return certificate
	}
	return err
}

// asJSON makes the body of a request of a value.
func asJSON(value any) func(bool) ([]byte, error) {
	return func(bool) ([]byte, error) { return encode(value) }
}

// encode writes a value, with texts as they are.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// saving makes the request that stores an object. The act has an ID, so that a repeated request stores nothing twice.
func saving(verb, path string, act *sluice.Act, body, out any) request {
	if act.ID.IsZero() {
		act.ID = sluice.NewID()
	}
	return request{verb: verb, method: http.MethodPut, path: path, act: act, out: out, body: asJSON(body)}
}

// why says why an act is done.
func why(act sluice.Act) wire.ReasonBody { return wire.ReasonBody{Reason: act.Reason} }

// posting is saving for requests of their own.
func posting(verb, path string, act *sluice.Act, body, out any) request {
	r := saving(verb, path, act, body, out)
	r.method = http.MethodPost
	return r
}

// deleting makes the request that deletes an object.
func deleting(verb, path string, act *sluice.Act) request {
	if act.ID.IsZero() {
		act.ID = sluice.NewID()
	}
	q := params{}
	q.text("reason", act.Reason)
	return request{verb: verb, method: http.MethodDelete, path: path, query: q.values(), act: act}
}

// withRaw writes an object with a field whose JSON stays as it is, to the byte.
func withRaw(value any, field string, raw json.RawMessage) ([]byte, error) {
	text, err := encode(value)
	if err != nil || raw == nil {
		return text, err
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%s is not valid JSON", field)
	}
	out := append(bytes.TrimSuffix(text, []byte("}")), `,"`+field+`":`...)
	return append(append(out, raw...), '}'), nil
}

// shortened cuts a text to at most n bytes.
func shortened(text string, n int) string {
	text = sluice.StoredText(text)
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}

// seconds reads seconds. What no duration can be is the longest.
func seconds(s float64) time.Duration {
	const most = float64(100 * 365 * 24 * time.Hour)
	return time.Duration(max(-most, min(s*float64(time.Second), most)))
}
