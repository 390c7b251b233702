import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { type ReactElement, useEffect } from "react";
import { watchChanges } from "@/lib/api/watch";
import { queryClient } from "./queryClient";
import { router } from "./router";
import { theme, variables } from "./theme";

export function App(): ReactElement {
  useEffect(() => watchChanges(queryClient), []);
  return (
    <MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto">
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
      <Notifications position="bottom-right" autoClose={4000} />
    </MantineProvider>
  );
}
