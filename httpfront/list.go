package httpfront

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// listTimeout is how long the host may take to list its tools (M3).
const listTimeout = 10 * time.Second

// listTools answers with the host's registry as it came and the bridge's own
// tools (M3). There is one page.
func (f *Front) listTools(w http.ResponseWriter, r *http.Request, id []byte) error {
	ctx, cancel := context.WithTimeout(r.Context(), listTimeout)
	defer cancel()
	tools, err := f.opt.Host.Tools(ctx)
	if err != nil {
		return errInternal(id, fmt.Errorf("listing the host's tools: %w", err))
	}
	list := append(make([]byte, 0, 64<<10), `"result":{"tools":[`...)
	for _, tool := range tools {
		if f.own(tool.Name) == nil {
			list = append(appendTool(list, tool), ',')
		}
	}
	for _, own := range f.opt.Own {
		list = append(appendTool(list, proto.Tool{
			RawName: proto.Encode(own.Name), Description: proto.Encode(own.Description), InputSchema: own.InputSchema,
		}), ',')
	}
	if list[len(list)-1] == ',' {
		list = list[:len(list)-1]
	}
	respond(w, http.StatusOK, id, append(list, `]}`...))
	return nil
}

// appendTool writes one entry: name, description, inputSchema.
func appendTool(dst []byte, tool proto.Tool) []byte {
	dst = append(append(dst, `{"name":`...), tool.RawName...)
	if tool.Description != nil {
		dst = append(append(dst, `,"description":`...), tool.Description...)
	}
	schema := tool.InputSchema
	if !proto.IsObjectSchema(schema) {
		schema = []byte(proto.ObjectSchema)
	}
	return append(append(append(dst, `,"inputSchema":`...), schema...), '}')
}

// own finds one of the bridge's own tools.
func (f *Front) own(name string) *Tool {
	for i := range f.opt.Own {
		if f.opt.Own[i].Name == name {
			return &f.opt.Own[i]
		}
	}
	return nil
}
