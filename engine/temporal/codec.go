package temporal

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sluice-queue/sluice/engine"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// A data converter may make calls too, for example to a codec server or a KMS. A failed call says nothing about
// the payload, unless the error itself does.

const (
	// codecCalls is the most conversions under way, for each call that may be in flight. The limit keeps hung
	// conversions from piling up.
	codecCalls = 4
	// resultWait is how long after its end a run waits for a failing data converter. briefResultWait applies if
	// the server's retention is unknown. Afterwards the job is settled without its result.
	resultWait      = time.Hour
	briefResultWait = 2 * time.Minute
)

// unfit reports whether an error of a data converter is final, so that a retry would fail too.
func unfit(err error) bool {
	if known, isKnown := errors.AsType[*temporal.ApplicationError](err); isKnown {
		return known.NonRetryable()
	}
	for _, permanent := range []error{
		engine.ErrRefused, converter.ErrUnableToEncode, converter.ErrUnableToDecode, converter.ErrUnableToFindConverter,
		converter.ErrUnableToSetValue, converter.ErrMetadataIsNotSet, converter.ErrEncodingIsNotSet, converter.ErrEncodingIsNotSupported,
		converter.ErrTypeNotImplementProtoMessage,
	} {
		if errors.Is(err, permanent) {
			return true
		}
	}
	return false
}

// converted calls a data converter, within the deadline of a call, because converters know no deadline.
func converted[T any](ctx context.Context, e *Engine, convert func() (T, error)) (out T, err error) {
	call, cancel := e.limited(ctx)
	defer cancel()
	select {
	case e.codec <- struct{}{}:
	case <-call.Done():
		return out, fmt.Errorf("%w: %d conversions have not come back: %w", engine.ErrCodec, cap(e.codec), call.Err())
	}
	type answer struct {
		value T
		err   error
	}
	back := make(chan answer, 1)
	go func() {
		defer func() { <-e.codec }()
		value, err := unpanicked("data converter", convert)
		back <- answer{value, err}
	}()
	select {
	case got := <-back:
		if got.err != nil && !unfit(got.err) {
			return got.value, fmt.Errorf("%w: %w", engine.ErrCodec, got.err)
		}
		return got.value, got.err
	case <-call.Done():
		return out, fmt.Errorf("%w: %w", engine.ErrCodec, call.Err())
	}
}

var errPanicked = errors.New("code of the program panicked")

// unpanicked calls code of the program. A panic becomes an error: it must not end the process, which dispatches other
// jobs too, and it does not show that the payload is at fault.
func unpanicked[T any](what string, do func() (T, error)) (out T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%w, its %s: %v\n%s", errPanicked, what, value, debug.Stack())
		}
	}()
	return do()
}

// waits reports whether an ended run can still wait for a failing data converter, to keep its result.
func (e *Engine) waits(p place, ended time.Time) bool {
	wait := briefResultWait
	if keeps, known := e.keeps.Load(p.Namespace); known {
		wait = resultWait
		if retention := keeps.(time.Duration); retention > 0 {
			wait = min(wait, retention/2)
		}
	}
	return time.Since(ended) < wait
}
