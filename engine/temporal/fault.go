package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-queue/sluice"
)

// maxName is how many bytes Temporal lets an id or a name have.
const maxName = 1000

// misnamed says why a ref, a namespace or a task queue does not work on Temporal; empty: it does. The SDK puts them into a
// header: where they are not ASCII its calls fail in a way that looks like passing trouble, and its workers cannot
// answer for such a workflow, so that it would never end.
func misnamed(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "it has a character that is not printable ASCII, of which Temporal's SDK makes nothing"
	}
	return mistyped(name)
}

// mistyped says why no server would take a name; empty: it would.
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

// fault wraps what a call failed with in the kind of answer that a dispatcher acts on.
func fault(doing string, err error) error {
	return fmt.Errorf("%s: %w: %w", doing, kind(err), err)
}

// meanings say what codes of gRPC tell of a call that failed, where nothing in the answer says otherwise. What is not
// clearly a no leaves open whether the server did what it was asked for: of starts whose deadline ran out, more than half had
// happened. So does every code that is not here: Canceled, Unknown, DeadlineExceeded, NotFound, AlreadyExists,
// FailedPrecondition, Aborted, OutOfRange, Internal, Unavailable, DataLoss, and those that nobody knows yet.
var meanings = map[codes.Code]error{
	codes.InvalidArgument:   sluice.ErrEngineRefused,
	codes.ResourceExhausted: sluice.ErrEngineBusy,
	codes.PermissionDenied:  sluice.ErrEngineTarget,
	codes.Unauthenticated:   sluice.ErrEngineTarget,
	codes.Unimplemented:     sluice.ErrEngineTarget,
}

// exceptions are texts that say more than the code that they come with.
var exceptions = []struct {
	code  codes.Code
	text  string
	means error
}{
	{codes.ResourceExhausted, "larger than max", sluice.ErrEngineRefused},              // gRPC's own limit of a message, which waiting does not lift
	{codes.Unknown, "status code received from server: 413", sluice.ErrEngineRefused},  // that of a proxy
	{codes.Unavailable, "Max QPS Reached", sluice.ErrEngineBusy},                       // of the server's store, told as if it were a fault
	{codes.Unavailable, "status code received from server: 429", sluice.ErrEngineBusy}, // that of a proxy
	{codes.Unavailable, "value too long for type", sluice.ErrEngineRefused},            // by PostgreSQL or MySQL, whose columns
	{codes.Unavailable, "Data too long for column", sluice.ErrEngineRefused},           // have room for 255 characters
}

// kind says which answer a failed call is.
func kind(err error) error {
	code := codeOf(err)
	for _, known := range exceptions {
		if code == known.code && strings.Contains(err.Error(), known.text) {
			return known.means
		}
	}
	means := meanings[code]
	switch {
	case lacksNamespace(err), errors.Is(means, sluice.ErrEngineRefused) && ofTarget(err):
		return sluice.ErrEngineTarget
	case means != nil:
		return means
	}
	return sluice.ErrEngineUnavailable
}

// codeOf is the gRPC code of an error, which the client may have turned into one of its own types.
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

// ofTarget reports whether an argument that the server calls invalid is the same for all jobs of the queue. No job is
// buried for it.
func ofTarget(err error) bool {
	text := strings.ToLower(strings.ReplaceAll(err.Error(), " ", ""))
	for _, common := range []string{"searchattribute", "taskqueue", "workflowtype", "namespace", "timeout"} {
		if strings.Contains(text, common) {
			return true
		}
	}
	return false
}

// lacksNamespace reports whether the server has no such namespace, or one that is deleted or deprecated.
func lacksNamespace(err error) bool {
	var missing *serviceerror.NamespaceNotFound
	var unfit *serviceerror.NamespaceInvalidState
	return errors.As(err, &missing) || errors.As(err, &unfit)
}

// lacksRun reports whether the server says for certain that it has no such run. A missing namespace is not that, and
// neither is the answer of a cluster that only holds a copy of the namespace, which may lag behind.
func lacksRun(err error) bool {
	var missing *serviceerror.NotFound
	if !errors.As(err, &missing) {
		return false
	}
	return missing.ActiveCluster == missing.CurrentCluster
}
