package extension_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/a2mcp/a2mcp/hostrpc/extension"
	"github.com/a2mcp/a2mcp/proto"
)

var update = flag.Bool("update", false, "write protocol.ts anew")

// TestProtocolTypes: the two halves of the bridge cannot drift apart (HOST.md):
// protocol.ts is what package proto makes of it.
func TestProtocolTypes(t *testing.T) {
	want := protocolTS()
	if *update {
		if os.Getenv("CI") != "" {
			t.Fatal("-update is for people, not for CI")
		}
		if err := os.WriteFile("protocol.ts", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("protocol.ts")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("protocol.ts does not match package proto; go test ./hostrpc/extension -update writes it\n%s", diff)
	}
}

// TestPackageListsItsFiles: by that list a later install knows what an earlier one
// came with.
func TestPackageListsItsFiles(t *testing.T) {
	var manifest struct{ Files []string }
	data, err := extension.Files.ReadFile("package.json")
	if err == nil {
		err = json.Unmarshal(data, &manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, err := extension.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, entry := range entries {
		if entry.Name() != "package.json" {
			want = append(want, entry.Name())
		}
	}
	if diff := cmp.Diff(want, manifest.Files); diff != "" {
		t.Errorf("package.json does not list what is embedded\n%s", diff)
	}
}

func protocolTS() string {
	var b strings.Builder
	b.WriteString("/** Made from package proto by protocol_test.go; go test ./hostrpc/extension -update writes it. */\n\n")
	fmt.Fprintf(&b, "export const protocolVersion = %d;\n", proto.HostProtocol)
	constants(&b, "ToSidecar", []string{
		"hello", proto.HostHello, "sessionStart", proto.HostSessionStart, "sessionShutdown", proto.HostSessionShutdown,
		"mainsChanged", proto.HostMainsChanged, "command", proto.HostCommand, "toolState", proto.HostToolState,
		"toolProgress", proto.HostToolProgress, "toolsChanged", proto.HostToolsChanged, "llmDenied", proto.HostLLMDenied,
	})
	constants(&b, "ToHost", []string{
		"hostState", proto.SidecarHostState, "toolsList", proto.SidecarToolsList, "toolsCall", proto.SidecarToolsCall,
		"toolsCancel", proto.SidecarToolsCancel, "llmSet", proto.SidecarLLMSet, "card", proto.SidecarCard,
		"notify", proto.SidecarNotify, "status", proto.SidecarStatus, "remember", proto.SidecarRemember,
	})
	constants(&b, "Feature", []string{
		"cancel", proto.FeatureCancel, "toolState", proto.FeatureToolState, "progress", proto.FeatureProgress,
		"exclusive", proto.FeatureExclusive, "cards", proto.FeatureCards, "llm", proto.FeatureLLM,
		"toolsChanged", proto.FeatureToolsChanged, "remember", proto.FeatureRemember,
	})
	constants(&b, "CallState", []string{
		"running", proto.StateRunning, "awaitingApproval", proto.StateApproval, "queued", proto.StateQueued,
	})
	constants(&b, "Outcome", []string{
		"done", proto.OutcomeDone, "notExposed", proto.OutcomeNotExposed, "noMain", proto.OutcomeNoMain, "cancelled", proto.OutcomeCancelled,
		"invalid", proto.OutcomeInvalid,
	})
	fmt.Fprintf(&b, "\nexport const ErrorCode = { methodNotFound: %d, invalidParams: %d, internal: %d, protocolSkew: %d } as const;\n",
		proto.CodeMethodNotFound, proto.CodeInvalidParams, proto.CodeInternal, proto.CodeProtocolSkew)
	for _, v := range []any{
		proto.HostInfo{}, proto.Hello{}, proto.HelloResult{}, proto.Command{}, proto.SessionStart{}, proto.SessionStartResult{},
		proto.SessionShutdown{}, proto.SessionShutdownResult{}, proto.MainsChanged{}, proto.OperatorCommand{}, proto.Message{},
		proto.ToolState{}, proto.Denied{}, proto.HostState{}, proto.LLMState{}, proto.LLMSet{}, proto.LLMResult{}, proto.CallRef{}, proto.Status{},
		proto.Memory{}, proto.Remember{},
	} {
		declare(&b, reflect.TypeOf(v))
	}
	return b.String()
}

func constants(b *strings.Builder, name string, pairs []string) {
	fmt.Fprintf(b, "\nexport const %s = {\n", name)
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(b, "\t%s: %q,\n", pairs[i], pairs[i+1])
	}
	b.WriteString("} as const;\n")
}

func declare(b *strings.Builder, typ reflect.Type) {
	fmt.Fprintf(b, "\nexport interface %s {\n", typ.Name())
	for field := range typ.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		optional := ""
		if options == "omitempty" {
			optional = "?"
		}
		fmt.Fprintf(b, "\t%s%s: %s;\n", name, optional, typeScript(field.Type))
	}
	b.WriteString("}\n")
}

func typeScript(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[json.RawMessage]():
		return "unknown"
	case typ.Kind() == reflect.Pointer:
		return typeScript(typ.Elem()) + " | null"
	case typ.Kind() == reflect.Slice:
		return typeScript(typ.Elem()) + "[]"
	case typ.Kind() == reflect.Struct:
		return typ.Name()
	case typ.Kind() == reflect.String:
		return "string"
	case typ.Kind() == reflect.Bool:
		return "boolean"
	default:
		return "number"
	}
}
