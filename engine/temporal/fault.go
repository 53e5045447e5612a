package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sluice-queue/sluice/engine"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxName is Temporal's length limit of an id or a name, in bytes.
const maxName = 1000

// misnamed returns why a ref, a namespace or a task queue does not work on Temporal; empty: it works. The SDK
// puts them into a header. If they are not ASCII, its calls fail in a way that looks temporary. Its workers
// cannot answer for such a workflow, which would then never end.
func misnamed(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "it has a character that is not printable ASCII, of which Temporal's SDK makes nothing"
	}
	return mistyped(name)
}

// mistyped returns why no server accepts a name; empty: servers accept it.
func mistyped(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxName:
		return fmt.Sprintf("it has %d bytes, more than Temporal's %d", len(name), maxName)
	case !utf8.ValidString(name), strings.ContainsRune(name, 0):
		return "it is not text in UTF-8"
	}
	return ""
}

// fault wraps the error of a call in the engine error that a dispatcher acts on.
func fault(doing string, err error) error {
	return fmt.Errorf("%s: %w: %w", doing, kind(err), err)
}

// meanings maps gRPC codes of failed calls to engine errors, unless the answer itself says more. A code that is
// not clearly a refusal leaves open whether the server did the work. Of starts whose deadline ran out, more
// than half had happened. This holds for every code missing here: Canceled, Unknown, DeadlineExceeded,
// NotFound, AlreadyExists, FailedPrecondition, Aborted, OutOfRange, Internal, Unavailable, DataLoss, and future
// codes.
var meanings = map[codes.Code]error{
	codes.InvalidArgument:   engine.ErrRefused,
	codes.ResourceExhausted: engine.ErrBusy,
	codes.PermissionDenied:  engine.ErrTarget,
	codes.Unauthenticated:   engine.ErrTarget,
	codes.Unimplemented:     engine.ErrTarget,
}

// exceptions are error texts that say more than their code.
var exceptions = []struct {
	code  codes.Code
	text  string
	means error
}{
	{codes.ResourceExhausted, "larger than max", engine.ErrRefused},              // gRPC's own limit of a message, which waiting does not lift
	{codes.Unknown, "status code received from server: 413", engine.ErrRefused},  // a proxy's limit of a request
	{codes.Unavailable, "Max QPS Reached", engine.ErrBusy},                       // the limit of the server's store, reported like a fault
	{codes.Unavailable, "status code received from server: 429", engine.ErrBusy}, // a proxy's rate limit
	{codes.Unavailable, "value too long for type", engine.ErrRefused},            // by PostgreSQL, whose column has room for 255 characters
	{codes.Unavailable, "Data too long for column", engine.ErrRefused},           // by MySQL, likewise
}

// kind returns the engine error for a failed call.
func kind(err error) error {
	code := codeOf(err)
	for _, known := range exceptions {
		if code == known.code && strings.Contains(err.Error(), known.text) {
			return known.means
		}
	}
	means := meanings[code]
	switch {
	case lacksNamespace(err), errors.Is(means, engine.ErrRefused) && ofTarget(err):
		return engine.ErrTarget
	case means != nil:
		return means
	}
	return engine.ErrUnavailable
}

// codeOf returns the gRPC code of an error, even if the client has turned it into one of its own types.
func codeOf(err error) codes.Code {
	var known serviceerror.ServiceError
	if errors.As(err, &known) {
		return known.Status().Code()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return codes.DeadlineExceeded
	}
	return status.Code(err)
}

// ofTarget reports whether an argument that the server calls invalid is the same for all jobs of the queue. No
// job is then buried.
func ofTarget(err error) bool {
	text := strings.ToLower(strings.ReplaceAll(err.Error(), " ", ""))
	for _, common := range []string{"searchattribute", "taskqueue", "workflowtype", "namespace", "timeout"} {
		if strings.Contains(text, common) {
			return true
		}
	}
	return false
}

// lacksNamespace reports whether the server has no such namespace, or a deleted or deprecated one.
func lacksNamespace(err error) bool {
	var missing *serviceerror.NamespaceNotFound
	var unfit *serviceerror.NamespaceInvalidState
	return errors.As(err, &missing) || errors.As(err, &unfit)
}

// lacksRun reports whether the server certainly has no such run. A missing namespace does not prove this.
// Neither does the answer of a cluster with only a copy of the namespace, which may lag behind. An answer without the
// details of a Temporal server may be that of a proxy.
func lacksRun(err error) bool {
	var missing *serviceerror.NotFound
	if !errors.As(err, &missing) {
		return false
	}
	return missing.ActiveCluster == missing.CurrentCluster && len(missing.Status().Details()) > 0
}
