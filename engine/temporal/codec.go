package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/sluice-queue/sluice"
)

// A data converter may call somebody too, such as a codec server or a KMS. What fails there says nothing of the payload,
// unless the error itself does.

const (
	// codecCalls is how many conversions may be under way at once, for each call that may be: those that never come back
	// must not pile up.
	codecCalls = 4
	// resultWait is how long after its end a run waits for a data converter that fails, and briefResultWait where it is
	// not known how long the server keeps runs. Then the job is settled without its result.
	resultWait      = time.Hour
	briefResultWait = 2 * time.Minute
)

// unfit reports whether an error of a data converter says that no other try goes better.
func unfit(err error) bool {
	if known, isKnown := errors.AsType[*temporal.ApplicationError](err); isKnown {
		return known.NonRetryable()
	}
	for _, permanent := range []error{
		sluice.ErrEngineRefused, converter.ErrUnableToEncode, converter.ErrUnableToDecode, converter.ErrUnableToFindConverter,
		converter.ErrUnableToSetValue, converter.ErrMetadataIsNotSet, converter.ErrEncodingIsNotSet, converter.ErrEncodingIsNotSupported,
		converter.ErrTypeNotImplementProtoMessage,
	} {
		if errors.Is(err, permanent) {
			return true
		}
	}
	return false
}

// converted has a data converter do something, within the time that a call may take: converters know no deadline.
func converted[T any](ctx context.Context, e *Engine, convert func() (T, error)) (out T, err error) {
	call, cancel := e.limited(ctx)
	defer cancel()
	select {
	case e.codec <- struct{}{}:
	case <-call.Done():
		return out, fmt.Errorf("%w: %d conversions have not come back: %w", sluice.ErrEngineCodec, cap(e.codec), call.Err())
	}
	type answer struct {
		value T
		err   error
	}
	back := make(chan answer, 1)
	go func() {
		defer func() { <-e.codec }()
		value, err := convert()
		back <- answer{value, err}
	}()
	select {
	case got := <-back:
		if got.err != nil && !unfit(got.err) {
			return got.value, fmt.Errorf("%w: %w", sluice.ErrEngineCodec, got.err)
		}
		return got.value, got.err
	case <-call.Done():
		return out, fmt.Errorf("%w: %w", sluice.ErrEngineCodec, call.Err())
	}
}

// waits reports whether a run that ended can still wait for a data converter that fails, so that its result is not lost.
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
