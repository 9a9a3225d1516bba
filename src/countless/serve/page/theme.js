/* Light or dark, before anything is painted: as the system has it, until the button says otherwise. */
(() => {
  const KEY = "countless-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const read = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // no storage: the choice lasts as long as the page
    }
  };
  let chosen = read();

  const isDark = () => (chosen ? chosen === "dark" : system.matches);
  const apply = () => {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    document.getElementById("theme")?.setAttribute("aria-pressed", String(isDark()));
  };
  const toggle = () => {
    chosen = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // kept for this page only
    }
    apply();
  };

  apply();
  system.addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme")?.addEventListener("click", toggle);
  });
})();
