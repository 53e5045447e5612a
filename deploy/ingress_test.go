package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

func TestIngressLeadsToTheServerAsTheGuideSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("kubernetes/ingress.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n---\n")
	if len(parts) != 3 {
		t.Fatalf("%d manifests", len(parts))
	}
	var ingress networkingv1.Ingress
	var service corev1.Service
	var policy networkingv1.NetworkPolicy
	for i, into := range []any{&ingress, &service, &policy} {
		if err := yaml.UnmarshalStrict([]byte(parts[i]), into, yaml.DisallowUnknownFields); err != nil {
			t.Fatal(err)
		}
	}
	labels := readManifests(t).server.Spec.Template.Labels
	for name, value := range service.Spec.Selector {
		if labels[name] != value || policy.Spec.PodSelector.MatchLabels[name] != value {
			t.Errorf("the service selects %s=%s, the server is %v", name, value, labels)
		}
	}
	backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != service.Name || backend.Port.Number != service.Spec.Ports[0].Port || policy.Spec.Ingress[0].Ports[0].Port.IntVal != backend.Port.Number {
		t.Errorf("the ingress leads to %+v, the service is %+v", backend, service.Spec.Ports)
	}
	guide, err := os.ReadFile("../docs/guide/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	for annotation, directive := range map[string]string{
		"proxy-body-size": "client_max_body_size", "proxy-buffering": "proxy_buffering", "proxy-request-buffering": "proxy_request_buffering",
		"proxy-read-timeout": "proxy_read_timeout",
	} {
		found := regexp.MustCompile(directive + ` (\w+);`).FindSubmatch(guide)
		if value := ingress.Annotations["nginx.ingress.kubernetes.io/"+annotation]; found == nil || value != strings.TrimSuffix(string(found[1]), "s") {
			t.Errorf("%s is %s, the guide says %q", annotation, value, found)
		}
	}
}
