package temporal

import (
	"context"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// missingClient replaces a nil client: each call of its service returns the error.
type missingClient struct {
	client.Client
	err error
}

// WorkflowService returns a service without a connection.
func (m missingClient) WorkflowService() workflowservice.WorkflowServiceClient {
	return workflowservice.NewWorkflowServiceClient(missingConnection{m.err})
}

type missingConnection struct{ err error }

// Invoke is part of grpc.ClientConnInterface.
func (m missingConnection) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return m.err
}

// NewStream is part of grpc.ClientConnInterface.
func (m missingConnection) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, m.err
}
